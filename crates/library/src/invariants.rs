//! To come.
use crate::controller::Library;
impl Library {
    pub(crate) fn check_invariants(&self) {
        self.traffic.check();
    }
}
