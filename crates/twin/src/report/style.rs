//! The style of the page. Colors are those of Okabe and Ito, which can be told apart with color
//! vision deficiencies, darkened or lightened to stand out from the page.

/// The style sheet of the page and of its figures.
pub(crate) const STYLE: &str = "
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c1c1e; --soft: #5b5b63;
  --rule: #d9d9de; --panel: #f5f5f7; --hit: #0a7a50; --miss: #b3261e;
  --c0: #55555d; --c1: #0072b2; --c2: #d55e00; --c3: #008f6b; --c4: #b0518a; --c5: #8a6d00; }
@media (prefers-color-scheme: dark) { :root { --page: #16161a; --ink: #ececf1; --soft: #a5a5b0;
  --rule: #3a3a42; --panel: #202026; --hit: #4fd1a0; --miss: #ff8a80;
  --c0: #b4b4be; --c1: #56b4e9; --c2: #f08a3c; --c3: #2fd3a5; --c4: #e39ac4; --c5: #e0c341; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; max-width: 60rem; } .soft { color: var(--soft); }
code { font: .9em ui-monospace, 'DejaVu Sans Mono', monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.beside { display: grid; grid-template-columns: minmax(0, 11fr) minmax(0, 9fr); gap: 1.5rem; }
.beside figure { position: sticky; top: 1rem; align-self: start; }
.beside > :only-child { grid-column: 1 / -1; }
@media (max-width: 60rem) { .beside { grid-template-columns: 1fr; } }
section { border-top: 1px solid var(--rule); padding-bottom: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td.number { white-space: nowrap;
  font-variant-numeric: tabular-nums; } td.number .soft { white-space: normal; }
.beside td:nth-child(2) { min-width: 11rem; } .beside td.number { white-space: normal; }
tr.group td { background: var(--panel); font-weight: 600; }
.hit, .miss { font-weight: 700; } .hit { color: var(--hit); } .miss { color: var(--miss); }
.totals { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.total { background: var(--panel); border-radius: .5rem; padding: .6rem 1rem; }
.total b { font-size: 1.4rem; display: block; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr));
  gap: 1.5rem; }
figure { margin: 0; } figcaption { font-size: .9rem; margin-bottom: .2rem; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 13px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
  fill: var(--ink); }
svg .tick { font-size: 12px; fill: var(--soft); } svg .value { font-size: 11px; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .grid { stroke: var(--rule); stroke-width: 1; } svg .frame { stroke: var(--soft); }
svg .limit { stroke: var(--miss); stroke-width: 1.5; stroke-dasharray: 2 4; }
svg .limit-label { fill: var(--miss); font-size: 12px; }
svg .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .range { opacity: .16; stroke: none; } svg .bar { stroke: var(--page); stroke-width: 1; }
svg .whisker { stroke: var(--ink); stroke-width: 1.4; }
svg .dot { stroke-width: 1.8; stroke-dasharray: none; } svg .hollow { fill: var(--page); }
svg .paper { fill: var(--page); fill-opacity: .85; stroke: var(--ink); stroke-width: 1.8; }
svg .line0 { stroke: var(--c0); stroke-dasharray: 6 4; } svg .line1 { stroke: var(--c1); }
svg .line2 { stroke: var(--c2); stroke-dasharray: 10 3; } svg .line3 { stroke: var(--c3); }
svg .line4 { stroke: var(--c4); stroke-dasharray: 3 3; } svg .line5 { stroke: var(--c5); }
svg .fill0 { fill: var(--c0); } svg .fill1 { fill: var(--c1); } svg .fill2 { fill: var(--c2); }
svg .fill3 { fill: var(--c3); } svg .fill4 { fill: var(--c4); } svg .fill5 { fill: var(--c5); }
svg .line { fill: none; } svg .dot { stroke-dasharray: none; }
svg .hollow { fill: var(--page); }
svg .shade { fill: var(--panel); } svg .heat { fill: var(--c1); shape-rendering: crispEdges; }
svg .key { stroke: var(--soft); stroke-width: .7; } 
svg .cell { font-size: 14px; } svg .inverse { fill: var(--page); }
svg .other { fill: none; stroke: var(--soft); stroke-width: 1; opacity: .55; }
.wide figure { margin: 0 0 .8rem; } pre { background: var(--panel); padding: .8rem 1rem;
  border-radius: .5rem; overflow-x: auto;
  font: 13px/1.4 ui-monospace, 'DejaVu Sans Mono', monospace; }
summary { cursor: pointer; font-weight: 600; margin: 1.2rem 0 .4rem; }
@media print { .figures { grid-template-columns: 1fr 1fr; } figure { break-inside: avoid; } }
";
