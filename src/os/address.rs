//! Addresses as the kernel returns them.

use std::net::SocketAddr;

use nix::sys::socket::SockaddrStorage;

/// The address of the internet protocols in `address`; none if it is of another family.
pub(crate) fn internet(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}
