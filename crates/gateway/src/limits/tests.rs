//! Connections leave file descriptors to the archive, whatever the system's limit is.

use super::Limits;

#[test]
fn connections_leave_room_for_files() {
    for (descriptors, connections) in
        [(0, 1), (64, 16), (256, 64), (640, 160), (1024, 512), (4096, 2048), (1 << 20, 2048)]
    {
        let limits = Limits::for_descriptors(descriptors);
        assert_eq!(limits.connections, connections, "{descriptors}");
    }
}
