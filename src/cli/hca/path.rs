//! The options of the connection and its path.

use std::ops::RangeInclusive;

use clap::Args;

use crate::arguments::values::{List, list, named};
use crate::bench::hca::settings::path::Connect;
use crate::bench::hca::settings::path::PathSettings;

/// How the two queue pairs are connected. Without a value, each is what the connection manager or --connect direct
/// chooses.
#[derive(Debug, Clone, Args)]
pub(crate) struct PathArguments {
    /// Connect queue pairs by: cm (the RDMA connection manager), direct (moved to RTS with the peer's LID or GID), auto
    /// (cm where it supports the settings)
    #[arg(long, value_name = "LIST", default_value = "auto", help_heading = "Path", value_parser = named::<Connect>)]
    pub connect: List<Connect>,

    /// Set the index of the GID, the same at both ends, 0 to 255; not with cm
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 0..=255))]
    pub gid_index: Option<List<u8>>,

    /// Set the service level, 0 to 15; on Ethernet the priority, 0 to 7; not with cm
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 0..=15))]
    pub service_level: Option<List<u8>>,

    /// Set the traffic class, 0 to 255 or 0x0 to 0xff; the type of service of RoCE v2
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 0..=255))]
    pub traffic_class: Option<List<u8>>,

    /// Set the largest payload of a packet in bytes: 256, 512, 1024, 2048 or 4096; not with cm, not on UD
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = path_mtus)]
    pub path_mtu: Option<List<u32>>,

    /// Set the index of the partition key, the same at both ends; not with cm
    #[arg(long, value_name = "LIST", help_heading = "Path",
          value_parser = |text: &str| numbers::<u16>(text, 0..=65_535))]
    pub pkey_index: Option<List<u16>>,

    /// Set the flow label, 0 to 1048575 or 0x0 to 0xfffff; not with cm
    #[arg(long, value_name = "LIST", help_heading = "Path",
          value_parser = |text: &str| numbers::<u32>(text, 0..=0xf_ffff))]
    pub flow_label: Option<List<u32>>,

    /// Retransmit an unacknowledged packet this many times, 0 to 7 (7: some drivers never give up); RC only
    /// [default: 6]
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 0..=7))]
    pub retry_count: Option<List<u8>>,

    /// Retry a packet this many times if the receiver has no request posted (RNR), 0 to 7 (7: without limit); RC only
    /// [default: 6]
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 0..=7))]
    pub rnr_retry: Option<List<u8>>,

    /// Retransmit an unacknowledged packet after 4.096 us x 2^N, N from 1 to 31; RC only [default: 15]
    #[arg(long, value_name = "LIST", help_heading = "Path", value_parser = |text: &str| numbers::<u8>(text, 1..=31))]
    pub qp_timeout: Option<List<u8>>,
}

impl PathArguments {
    /// All combinations; the last list changes fastest.
    pub(crate) fn paths(&self) -> Vec<PathSettings> {
        let paths = vec![PathSettings::default()];
        let paths = each(paths, &self.gid_index, |path, it| path.gid_index = it);
        let paths = each(paths, &self.service_level, |path, it| {
            path.service_level = it;
        });
        let paths = each(paths, &self.traffic_class, |path, it| {
            path.traffic_class = it;
        });
        let paths = each(paths, &self.path_mtu, |path, it| path.path_mtu = it);
        let paths = each(paths, &self.pkey_index, |path, it| path.pkey_index = it);
        let paths = each(paths, &self.flow_label, |path, it| path.flow_label = it);
        let paths = each(paths, &self.retry_count, |path, it| path.retry_count = it);
        let paths = each(paths, &self.rnr_retry, |path, it| path.rnr_retry = it);
        each(paths, &self.qp_timeout, |path, it| path.qp_timeout = it)
    }
}

fn each<T: Copy>(
    paths: Vec<PathSettings>,
    values: &Option<List<T>>,
    set: impl Fn(&mut PathSettings, Option<T>),
) -> Vec<PathSettings> {
    let Some(List(values)) = values else {
        return paths;
    };
    let mut all = Vec::with_capacity(paths.len() * values.len());
    for path in paths {
        for &value in values {
            let mut path = path;
            set(&mut path, Some(value));
            all.push(path);
        }
    }
    all
}

/// A list of numbers of a range, each decimal or hexadecimal with 0x.
fn numbers<T: TryFrom<u32> + PartialEq>(
    text: &str,
    allowed: RangeInclusive<u32>,
) -> Result<List<T>, String> {
    list(text, |part| {
        let number = match part.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => part.parse(),
        };
        let number = number.ok().filter(|number| allowed.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        let (least, most) = (allowed.start(), allowed.end());
        number.ok_or_else(|| format!("{part:?} is not a whole number from {least} to {most}"))
    })
}

fn path_mtus(text: &str) -> Result<List<u32>, String> {
    list(text, |part| {
        let found = part.parse().ok();
        let found = found.filter(|mtu: &u32| mtu.is_power_of_two() && (256..=4096).contains(mtu));
        found.ok_or_else(|| format!("{part:?} is not one of 256, 512, 1024, 2048, 4096"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_in_their_range() {
        assert_eq!(
            numbers::<u8>("0,0x6A, 255", 0..=255).unwrap().0,
            [0, 0x6a, 255]
        );
        for bad in ["256", "-1", "0x", "0x100", "1.5", "", "x"] {
            let error = numbers::<u8>(bad, 0..=255).unwrap_err();
            assert!(error.contains("from 0 to 255"), "{error}");
        }
        assert_eq!(path_mtus("256,4096").unwrap().0, [256, 4096]);
        for bad in ["128", "1000", "8192", "1k"] {
            assert!(path_mtus(bad).unwrap_err().contains("256, 512"), "{bad}");
        }
    }
}
