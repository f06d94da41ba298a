//! Stores as they are: each backend against a real server, where there is one to start.

mod chance;
mod conformance;
mod fragments;
mod liars;
mod servers;
mod stores;
