//! UDP over the loopback, or between two hosts: a socket for each end.
//!
//! Inside the latency of a sample: `sendto`, the kernel's loopback or the network, and `recv`. A datagram that finds the receiving
//! socket's buffer full is lost. A publisher distributes its samples itself.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::settings::Poll;
use super::wiring::Distribution;
use super::{LONGEST_SLEEP_MS, Maker, Node, NodeError, Pool, Settings, Slot, Wiring, fill};

/// The end that sends.
#[derive(Debug)]
pub struct UdpPublisher {
    socket: UdpSocket,
    targets: Vec<SocketAddr>,
    distribution: Distribution,
}

/// The end that receives.
#[derive(Debug)]
pub struct UdpSubscriber {
    socket: UdpSocket,
    poll: Poll,
    /// Room for a datagram, and for one byte more: a longer one is none of ours.
    datagram: Vec<u8>,
}

/// Opens sockets, of which the kernel chooses the ports.
#[derive(Debug)]
pub struct Udp<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
}

impl Maker for Udp<'_> {
    type Publisher = UdpPublisher;
    type Subscriber = UdpSubscriber;
    type Address = SocketAddr;

    fn publisher(&self, number: u32, addresses: &[SocketAddr]) -> Result<UdpPublisher, NodeError> {
        let (socket, _) = open(self.settings.address)?;
        let targets = self.wiring.subscribers_of(number);
        let targets = targets.map(|target| addresses[target as usize]).collect();
        let distribution = Distribution::new(self.wiring, number);
        Ok(UdpPublisher::new(socket, targets, distribution))
    }

    fn subscriber(&self, _number: u32) -> Result<(UdpSubscriber, SocketAddr), NodeError> {
        let (socket, address) = open(self.settings.address)?;
        Ok((UdpSubscriber::new(socket, self.settings)?, address))
    }
}

impl UdpPublisher {
    /// A publisher that sends to these addresses, of which each sample goes to those that are its targets.
    pub(super) fn new(
        socket: UdpSocket,
        targets: Vec<SocketAddr>,
        distribution: Distribution,
    ) -> Self {
        UdpPublisher {
            socket,
            targets,
            distribution,
        }
    }
}

impl UdpSubscriber {
    /// A subscriber that receives what is sent to a socket.
    pub(super) fn new(socket: UdpSocket, settings: &Settings) -> Result<Self, NodeError> {
        // A subscriber that sleeps asks poll first, so none of them may block.
        let set = socket.set_nonblocking(true);
        set.map_err(NodeError::io(
            "set O_NONBLOCK on",
            "a UDP socket",
            "this is a bug",
        ))?;
        Ok(UdpSubscriber {
            socket,
            poll: settings.poll,
            datagram: vec![0; settings.words * super::pool::WORD + 1],
        })
    }
}

fn open(address: IpAddr) -> Result<(UdpSocket, SocketAddr), NodeError> {
    let address = SocketAddr::from((address, 0));
    let socket = UdpSocket::bind(address).map_err(NodeError::io(
        "bind",
        address,
        "check that the loopback is up (ip link)",
    ))?;
    let address = socket.local_addr();
    let address = address.map_err(NodeError::io(
        "getsockname",
        "a UDP socket",
        "this is a bug",
    ))?;
    Ok((socket, address))
}

impl Node for UdpPublisher {
    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        for slot in &*samples {
            for target in self.distribution.next_targets() {
                let address = self.targets[target];
                match self.socket.send_to(pool.bytes(slot), address) {
                    Ok(_) => {}
                    // The kernel has no room, and drops it as it would later.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                    Err(error) => {
                        return Err(NodeError::io(
                            "send to",
                            address,
                            "check whether its subscriber has exited",
                        )(error));
                    }
                }
            }
        }
        Ok(samples.len())
    }
}

impl Node for UdpSubscriber {
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], _: bool| match end.socket.recv(&mut end.datagram)
        {
            Ok(bytes) => Ok(Some(pool.copy_in(&free[0], &end.datagram[..bytes]).into())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(0)),
            Err(error) => Err(NodeError::io("receive from", "a UDP socket", "check dmesg")(error)),
        };
        let wait = |end: &mut Self| {
            if end.poll == Poll::Event {
                let mut fds = [PollFd::new(end.socket.as_fd(), PollFlags::POLLIN)];
                // An interrupted wait is like one that was in vain.
                let _ = poll(&mut fds, PollTimeout::from(LONGEST_SLEEP_MS));
            }
        };
        fill(self, samples, go_on, look, wait)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::buffer::HugePagePolicy;
    use crate::node::{Ends, Scenario};

    #[test]
    fn samples_come_to_each_subscriber_and_others_are_passed_over() {
        let wiring = Wiring::new(Scenario::FanOut, 1, 2);
        let settings = Settings {
            poll: Poll::Event,
            vectorize: 4,
            ..Settings::of_words(3)
        };
        let maker = Udp {
            wiring: &wiring,
            settings: &settings,
        };
        let mut ends = Ends::of(&maker, &wiring).unwrap();
        let mut pool = Pool::new(8, 3, HugePagePolicy::Off).unwrap();
        let mut samples = Vec::new();
        pool.fill(&mut samples, 2);
        (0..2).for_each(|at| pool.set_word(&samples[at], 2, 70 + at as u64));
        let target = ends.subscribers[1].socket.local_addr().unwrap();
        ends.publishers[0].socket.send_to(&[1; 25], target).unwrap();
        assert_eq!(
            ends.publishers[0].write(&mut pool, &mut samples).unwrap(),
            2
        );
        pool.release_all(&mut samples);
        for subscriber in &mut ends.subscribers {
            let mut found = Vec::new();
            while found.len() < 2 {
                pool.fill(&mut samples, 4);
                let received = subscriber.read(&mut pool, &mut samples, || true).unwrap();
                found.extend(samples[..received].iter().map(|slot| pool.word(slot, 2)));
                pool.release_all(&mut samples);
            }
            assert_eq!(found, [70, 71]);
        }
        pool.fill(&mut samples, 1);
        assert_eq!(
            ends.subscribers[0]
                .read(&mut pool, &mut samples, || false)
                .unwrap(),
            0
        );
    }
}
