//! The datagrams: what they say ([`message`]) and how they are laid out ([`frame`]).

pub mod auth;
pub mod echo;
pub mod frame;
pub mod message;
