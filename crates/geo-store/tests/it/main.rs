//! Objects over several sites, held from outside.

mod conformance;
mod shelf;
mod sites_fail;
mod wan;
