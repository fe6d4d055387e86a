//! The kernel's loopback interface, by which node-types with sockets of IP, and a broker that is started for a run, send
//! on one host.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};

/// Why nothing can be sent over the loopback interface, if so: in a new network namespace it is down.
pub fn refusal(what: &str) -> Option<String> {
    // Of a UDP socket, this finds the route and sends nothing. Any port does.
    let route = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.connect((Ipv4Addr::LOCALHOST, 9)));
    route.err().and_then(|error| refusal_of(what, error.kind()))
}

fn refusal_of(what: &str, error: ErrorKind) -> Option<String> {
    matches!(
        error,
        ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable
    )
    .then(|| {
        format!(
            "{what} is impossible: the loopback interface is down, as in a new network namespace; bring it up (ip link \
             set lo up)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn only_an_interface_that_is_down_is_refused() {
        assert_eq!(refusal("--type udp"), None);
        for error in [ErrorKind::NetworkUnreachable, ErrorKind::AddrNotAvailable] {
            let told = refusal_of("--type udp", error).unwrap();
            told.has(&[
                "--type udp",
                "the loopback interface is down",
                "ip link set lo up",
            ]);
        }
        // Such as too many open files, which the node-type reports itself.
        assert_eq!(refusal_of("--type udp", ErrorKind::Other), None);
    }
}
