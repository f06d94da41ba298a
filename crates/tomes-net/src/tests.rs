//! Tests of what needs no socket.
