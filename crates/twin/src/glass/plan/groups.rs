//! Groups: candidates that differ only in shuttles, each represented by the one with the most.

use super::{Candidate, PlanRequest};

/// Returns all feasible groups with the lower bound of their cost, in the order of their cost with
/// one shuttle per drive. The first group that meets the requirements is then about as cheap as the
/// plan, so the lower bound rules out most of the more expensive ones.
pub(super) fn groups(request: &PlanRequest, set_racks: u16) -> Vec<(f64, Candidate)> {
    let cost_lower_bound = |group: &Candidate, shuttles| {
        request.costs.cost_lower_bound(&group.with_shuttles(shuttles))
    };
    let likely = |group: &Candidate| cost_lower_bound(group, group.one_shuttle_each());
    let mut groups: Vec<(f64, Candidate)> = combinations(request, set_racks)
        .into_iter()
        .filter_map(|group| with_most_shuttles(request, group))
        .map(|group| (cost_lower_bound(&group, 1), group))
        .collect();
    groups.sort_by(|(_, a), (_, b)| likely(a).total_cmp(&likely(b)).then_with(|| a.cmp(b)));
    groups
}

/// Returns whether the drives could verify the ingest if they did nothing else.
pub(super) fn can_verify(request: &PlanRequest, candidate: &Candidate) -> bool {
    let drives = f64::from(candidate.drives()) * f64::from(candidate.libraries);
    #[expect(clippy::cast_precision_loss, reason = "210 MB/s at most")]
    let each = candidate.throughput.bytes_per_second() as f64;
    drives * each * 86_400.0 >= request.verify_per_day()
}

fn combinations(request: &PlanRequest, set_racks: u16) -> Vec<Candidate> {
    let space = &request.space;
    let mut all = Vec::new();
    for libraries in space.libraries[0]..=space.libraries[1] {
        let Some(storage_racks) = storage_racks(request, libraries, set_racks) else { continue };
        for policy in &space.policies {
            for &read_racks in &space.read_racks {
                for &drives_per_read_rack in &space.drives_per_read_rack {
                    all.extend(space.throughputs.iter().map(|&throughput| Candidate {
                        libraries,
                        policy: policy.clone(),
                        read_racks,
                        drives_per_read_rack,
                        throughput,
                        storage_racks,
                        panels: request.library.panels,
                        shuttles_per_panel: space.shuttles_per_panel_max,
                    }));
                }
            }
        }
    }
    all
}

/// Returns the racks needed for a set and for all platters; `None` if they are too many.
fn storage_racks(request: &PlanRequest, libraries: u32, set_racks: u16) -> Option<u16> {
    let shape = &request.library;
    let homes = shape.slots_per_shelf - shape.spare_slots_per_shelf;
    let per_rack = u64::from(shape.panels * shape.shelves_per_panel) * u64::from(homes);
    let platters = request.platters().div_ceil(u64::from(libraries));
    let racks = u16::try_from(platters.div_ceil(per_rack.max(1))).ok()?.max(set_racks);
    (racks <= request.space.storage_racks_max).then_some(racks)
}

/// Gives a group as many shuttles as the library's own rules allow (two per drive, and room).
fn with_most_shuttles(request: &PlanRequest, group: Candidate) -> Option<Candidate> {
    let most = (1..=group.shuttles_per_panel).rev();
    most.map(|shuttles| group.with_shuttles(shuttles))
        .find(|candidate| candidate.shape(request).validate().is_ok())
}
