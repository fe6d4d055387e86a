//! gRPC by tonic: a call that streams samples, from each publisher to each of its subscribers.
//!
//! A subscriber is a server on the loopback, or on another host, a publisher a client with a separate connection to
//! each of its subscribers, among which it distributes its samples itself. A message is a sample without an encoding by
//! protobuf. A call carries the name of the run as metadata, and a server refuses others.
//!
//! Inside the latency of a sample: a channel to the thread of the client, which drives HTTP/2; TCP over the loopback or
//! the network with `TCP_NODELAY`; HTTP/2 of the server, which the subscriber's thread drives itself, and the channel
//! behind it. The thread of the client has no separate CPU: it runs where the rest of the process does. Memory is
//! allocated for each sample at both ends.
//!
//! The channel of a connection holds as many samples as the setting of the send queue, that of a subscriber as many as
//! that of the receive queue, beside the windows of HTTP/2 and the buffers of the kernel. A sample that finds no room
//! at one of its subscribers is refused for all. None is lost as long as both ends run.

mod publisher;
mod subscriber;

use std::net::SocketAddr;

use bytes::{Buf as _, BufMut as _, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

pub use publisher::GrpcPublisher;
pub use subscriber::GrpcSubscriber;

use super::wiring::Distribution;
use super::{Maker, NodeError, Settings, Wiring};

/// The call.
const PATH: &str = "/hcabench.Node/Publish";
/// The metadata with the name of the run.
const RUN: &str = "hcabench-run";

/// Makes servers, and clients that call them.
#[derive(Debug)]
pub struct Grpc<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
}

impl Maker for Grpc<'_> {
    type Publisher = GrpcPublisher;
    type Subscriber = GrpcSubscriber;
    type Address = SocketAddr;

    fn publisher(&self, number: u32, addresses: &[SocketAddr]) -> Result<GrpcPublisher, NodeError> {
        let targets = self.wiring.subscribers_of(number);
        let targets = targets.map(|target| addresses[target as usize]);
        let distribution = Distribution::new(self.wiring, number);
        GrpcPublisher::new(self, targets.collect(), distribution)
    }

    fn subscriber(&self, number: u32) -> Result<(GrpcSubscriber, SocketAddr), NodeError> {
        let publishers = self.wiring.publishers_of(number).count();
        GrpcSubscriber::new(self, publishers)
    }
}

/// Samples as they are.
#[derive(Debug, Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, sample: Bytes, room: &mut EncodeBuf<'_>) -> Result<(), Status> {
        room.put(sample);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

#[cfg(test)]
mod tests;
