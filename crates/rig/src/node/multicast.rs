//! UDP multicast: a datagram for a group, which the kernel copies for each member; [`udp`](super::udp) with groups.
//!
//! | scenario | groups | members of a group |
//! | --- | --- | --- |
//! | straight-run | one for each publisher | its subscriber |
//! | fan-in | one for each subscriber | that subscriber; its publishers send to it |
//! | fan-out | one | all subscribers; all publishers send to it |
//!
//! Round-robin is impossible, as each member gets each sample.
//!
//! Inside the latency of a sample: `sendto`, the kernel's way over the interface, copying for each member, and `recv`. A
//! datagram that finds a member's buffer full is lost to that member. Groups and port follow from the name of the run,
//! so that runs beside each other do not mix. On another interface than the loopback, datagrams leave the host as well,
//! as far as the next router.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::net::if_::{if_nameindex, if_nametoindex};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt,
};

use super::settings::LOOPBACK;
use super::udp::{UdpPublisher, UdpSubscriber};
use super::wiring::Distribution;
use super::{Maker, NodeError, Scenario, Settings, Wiring, loopback_interface, socket_option};

/// The first port, and how many there are: below those that the kernel gives to others.
const PORTS: (u16, u16) = (16_384, 16_384);

/// Opens sockets that send to groups and are members of them.
#[derive(Debug)]
pub struct Multicast<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
}

/// One of the groups of a run, of those that an organisation uses as it likes (RFC 2365).
fn group(name: &str, number: u32) -> SocketAddrV4 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let hash = hasher.finish();
    let [high, low] = (hash as u16).wrapping_add(number as u16).to_be_bytes();
    let port = PORTS.0 + (hash >> 16) as u16 % PORTS.1;
    SocketAddrV4::new(Ipv4Addr::new(239, 255, high, low), port)
}

/// The number of the group of which a subscriber is a member.
fn group_number(wiring: &Wiring, subscriber: u32) -> u32 {
    match wiring.scenario {
        Scenario::FanOut => 0,
        _ => subscriber,
    }
}

/// Sets an option that names a group, an interface, or both.
fn set(socket: &UdpSocket, option: libc::c_int, group: Ipv4Addr, interface: u32) -> io::Result<()> {
    let address = |it: Ipv4Addr| libc::in_addr {
        s_addr: u32::from_ne_bytes(it.octets()),
    };
    let request = libc::ip_mreqn {
        imr_multiaddr: address(group),
        imr_address: address(Ipv4Addr::UNSPECIFIED),
        imr_ifindex: interface as libc::c_int,
    };
    Ok(socket_option::set(
        socket,
        libc::IPPROTO_IP,
        option,
        request,
    )?)
}

/// A socket that sends over that interface.
fn sending(interface: u32) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let none = Ipv4Addr::UNSPECIFIED;
    set(&socket, libc::IP_MULTICAST_IF, none, interface)?;
    Ok(socket)
}

/// A member of a group, which other sockets can be, too. Bound to the group, it gets no datagrams of others.
fn member(group: SocketAddrV4, interface: u32) -> io::Result<UdpSocket> {
    let (kind, flags) = (SockType::Datagram, SockFlag::SOCK_CLOEXEC);
    let opened = socket(AddressFamily::Inet, kind, flags, None)?;
    setsockopt(&opened, sockopt::ReuseAddr, &true)?;
    bind(opened.as_raw_fd(), &SockaddrIn::from(group))?;
    let socket = UdpSocket::from(opened);
    set(&socket, libc::IP_ADD_MEMBERSHIP, *group.ip(), interface)?;
    Ok(socket)
}

impl Multicast<'_> {
    fn interface(&self) -> Result<u32, NodeError> {
        index(&self.settings.sockets.multicast_interface).map_err(NodeError::Setting)
    }
}

/// The kernel's number of an interface.
///
/// # Errors
/// When there is none of this name.
pub fn index(name: &str) -> Result<u32, String> {
    if_nametoindex(name).map_err(|error| {
        let all = if_nameindex().map(|all| {
            let names = all
                .iter()
                .map(|it| it.name().to_string_lossy().into_owned());
            names.collect::<Vec<_>>().join(", ")
        });
        format!(
            "--multicast-interface {name}: {}: it must be one of {}",
            error.desc(),
            all.unwrap_or_else(|_| "the interfaces of this host (ip link)".to_owned())
        )
    })
}

impl Maker for Multicast<'_> {
    type Publisher = UdpPublisher;
    type Subscriber = UdpSubscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<UdpPublisher, NodeError> {
        // All of its subscribers are members of one group.
        let member = self.wiring.subscribers_of(number).next().unwrap_or(0);
        let group = group(self.name, group_number(self.wiring, member));
        let advice = "check the interface (--multicast-interface)";
        let socket = sending(self.interface()?).map_err(NodeError::io("send to", group, advice))?;
        let targets = vec![SocketAddr::from(group)];
        Ok(UdpPublisher::new(socket, targets, Distribution::to_one()))
    }

    fn subscriber(&self, number: u32) -> Result<(UdpSubscriber, ()), NodeError> {
        let group = group(self.name, group_number(self.wiring, number));
        let advice = "run it again for another group and port, or check the interface (--multicast-interface)";
        let socket = member(group, self.interface()?);
        let socket = socket.map_err(NodeError::io("join", group, advice))?;
        Ok((UdpSubscriber::new(socket, self.settings)?, ()))
    }
}

/// Why multicast is impossible in this scenario or over that interface, if it is.
pub fn refusal(wiring: &Wiring, settings: &Settings) -> Option<String> {
    if wiring.takes_turns() {
        return Some(
            "--type multicast is impossible with --scenario round-robin: each member of a group gets each sample; use \
             fan-out"
                .to_owned(),
        );
    }
    let name = &settings.sockets.multicast_interface;
    if name == LOOPBACK {
        return loopback_interface::refusal("--type multicast");
    }
    let found = match index(name) {
        Ok(found) => found,
        Err(reason) => return Some(reason),
    };
    // Of a UDP socket, this finds the route and sends nothing.
    let route = sending(found).and_then(|socket| socket.connect(group("", 0)));
    let error = route.err()?;
    let is_down = matches!(
        error.kind(),
        ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown | ErrorKind::AddrNotAvailable
    );
    is_down.then(|| {
        format!(
            "--multicast-interface {name}: {error}: it is down or has no IPv4 address; check it with ip address show \
             {name}, or use another one"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::HugePagePolicy;
    use crate::node::{Ends, Node as _, Pool};
    use crate::testing::Has as _;

    /// Sends a sample from each publisher, and returns what comes to each subscriber.
    fn received(scenario: Scenario, publishers: u32, subscribers: u32) -> Vec<Vec<u64>> {
        let wiring = Wiring::new(scenario, publishers, subscribers);
        let settings = Settings {
            vectorize: 8,
            ..Settings::of_words(3)
        };
        let name = format!("{scenario:?}-{}", std::process::id());
        let maker = Multicast {
            wiring: &wiring,
            settings: &settings,
            name: &name,
        };
        let mut ends = Ends::of(&maker, &wiring).unwrap();
        let mut pool = Pool::new(8, 3, HugePagePolicy::Off).unwrap();
        let mut samples = Vec::new();
        for (publisher, number) in ends.publishers.iter_mut().zip(0..) {
            pool.fill(&mut samples, 1);
            pool.set_word(&samples[0], 2, number);
            assert_eq!(publisher.write(&mut pool, &mut samples).unwrap(), 1);
            pool.release_all(&mut samples);
        }
        let found = ends.subscribers.iter_mut().map(|subscriber| {
            pool.fill(&mut samples, 8);
            // The loopback has delivered before a datagram is sent.
            let count = subscriber.read(&mut pool, &mut samples, || false).unwrap();
            let found = samples[..count].iter().map(|it| pool.word(it, 2)).collect();
            pool.release_all(&mut samples);
            found
        });
        found.collect()
    }

    #[test]
    fn samples_come_once_to_each_member_of_their_group_alone() {
        assert_eq!(received(Scenario::StraightRun, 2, 2), [[0], [1]]);
        assert_eq!(received(Scenario::FanOut, 2, 3), vec![vec![0, 1]; 3]);
        assert_eq!(received(Scenario::FanIn, 3, 2), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn runs_have_groups_and_ports_that_differ() {
        let (one, other) = (group("one", 0), group("other", 0));
        assert_ne!(one, other);
        assert_ne!(one.ip(), group("one", 1).ip());
        assert_eq!(one.port(), group("one", 1).port());
        assert!(one.ip().is_multicast() && one.port() >= PORTS.0);
    }

    #[test]
    fn what_multicast_cannot_do_and_interfaces_that_are_not_there_are_refused() {
        let refused = |scenario, interface: &str| {
            let mut settings = Settings::of_words(3);
            settings.sockets.multicast_interface = interface.to_owned();
            refusal(&Wiring::new(scenario, 2, 2), &settings)
        };
        assert_eq!(refused(Scenario::FanOut, LOOPBACK), None);
        let turns = refused(Scenario::RoundRobin, LOOPBACK).unwrap();
        turns.has(&["--type multicast", "--scenario round-robin", "fan-out"]);
        let missing = refused(Scenario::FanOut, "hcabench9").unwrap();
        missing.has(&["--multicast-interface hcabench9", "one of", LOOPBACK]);
    }
}
