//! What goes over the wire, and how it is told from a forgery.

pub mod auth;
