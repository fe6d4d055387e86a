use super::*;
use crate::host::pinning;
use crate::testing::{Has as _, Refused as _};

fn load(percent: u32) -> MemoryLoad {
    MemoryLoad::of_percent(percent).unwrap()
}

fn allowed(bytes: u64) -> Option<Allowance> {
    Some(Allowance { bytes, group: None })
}

const MIB: u64 = 1 << 20;

#[test]
fn a_load_is_one_to_a_hundred_per_cent_or_off() {
    for bad in [0, 101, u32::MAX] {
        assert_eq!(MemoryLoad::of_percent(bad), None);
    }
    assert_eq!(load(100).percent(), 100);
    assert_eq!(load(7).to_string(), "7%");
    assert_eq!(MemoryLoad::OFF.percent(), 0);
    assert_eq!(MemoryLoad::OFF.to_string(), "off");
    // Without one, points are named as ever.
    assert_eq!(MemoryLoad::OFF.in_name(), "");
    assert_eq!(load(50).in_name(), "-memory_load50");
}

#[test]
fn buffers_leave_the_cache_where_they_fit_beside_the_rest() {
    let cpus: CpuSet = "2-3".parse().unwrap();
    let sized = |cache: Option<u64>, bytes, others| {
        let cache = cache.map(|mib| Bytes(mib * MIB));
        size_of_buffers(allowed(bytes).as_ref(), cache, &cpus, others).map(|size| size.0 / MIB)
    };
    assert_eq!(sized(Some(32), 8 << 30, 0), Ok(128));
    assert_eq!(sized(Some(480), 8 << 30, 0), Ok(1024));
    assert_eq!(sized(None, 8 << 30, 0), Ok(1024));
    // Four buffers share what is left.
    assert_eq!(sized(Some(480), 1 << 30, 24 * MIB), Ok(250));
    assert_eq!(sized(Some(32), 9 * MIB, MIB), Ok(2));
    let told = [
        "--memory-load with generators on CPU 2-3",
        "half of this machine",
        "taskset",
    ];
    sized(Some(32), 8 * MIB, MIB).refused(&told);
    sized(Some(32), 8 * MIB, u64::MAX).refused(&["most of it for what is measured"]);
    assert_eq!(
        size_of_buffers(None, None, &cpus, u64::MAX),
        Ok(Bytes(1 << 30))
    );
}

#[test]
fn without_cpus_or_loads_there_are_no_generators() {
    let here: CpuSet = "0".parse().unwrap();
    let of = |cpus: &CpuSet, loads: &[MemoryLoad]| {
        let loads = loads.iter().copied();
        RunGenerators::within(allowed(8 << 30).as_ref(), None, cpus.clone(), loads, 0).unwrap()
    };
    assert!(of(&CpuSet::new(), &[load(50)]).is_none());
    assert!(of(&here, &[MemoryLoad::OFF]).is_none());
    let some = of(&here, &[load(50), MemoryLoad::OFF, load(20), load(50)]).unwrap();
    assert_eq!(some.percents(), [20, 50]);
    let others: CpuSet = "0-2".parse().unwrap();
    assert_eq!(some.without_generators(&others), "1-2".parse().unwrap());
    assert_eq!(some.without_generators(&here), here);
    assert!(some.preparation() > Duration::from_secs(2) && some.finding().is_none());
    assert_eq!(some.calibration(), Value::Null);
    assert_eq!(some.obtained()["generators"], json!("0"));
}

#[test]
fn buffers_that_the_cache_holds_are_warned_of() {
    let of = |bytes| {
        let cache = Some(Bytes(32 * MIB));
        RunGenerators::within(
            allowed(bytes).as_ref(),
            cache,
            "0".parse().unwrap(),
            [load(9)],
            0,
        )
        .unwrap()
        .unwrap()
    };
    assert_eq!(of(1 << 30).finding(), None);
    let found = of(128 * MIB).finding().unwrap();
    assert_eq!(found.kind, GENERATORS_IN_CACHE.id);
    found.problem.has(&["64 MiB each", "32 MiB"]);
}

#[test]
fn a_load_is_drawn_from_its_beginning_to_its_end() {
    let here = pinning::current_cpu().unwrap();
    let mut beside = RunGenerators::made_up(CpuSet::from_iter([here]), &[load(30), load(100)]);
    beside.prepare().unwrap();
    let told = beside.calibration();
    assert_eq!(told["loads"][0]["percent"], json!(30));
    assert_eq!(told["loads"][1]["percent"], json!(100));
    assert_eq!(told["loads"][1]["pause_nops"], 0);
    assert_eq!(told["loads"][1]["mb_s"], told["peak_mb_s"]);
    assert!(told["loads"][0]["mb_s"].as_f64() > Some(0.0), "{told}");
    assert_eq!(beside.obtained()["pages"].as_array().map(Vec::len), Some(2));
    assert!(beside.load(MemoryLoad::OFF).is_none());
    let mut drawing = beside.load(load(100)).unwrap();
    assert_eq!(drawing.drawn(), None);
    drawing.begin().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    drawing.end().unwrap();
    let drawn = drawing.drawn().unwrap();
    assert!(drawn.time >= Duration::from_millis(30), "{drawn:?}");
    assert!(drawn.mb_per_s() > 0.0, "{drawn:?}");
    // A second end changes nothing, and one that is only dropped rests as well.
    drawing.end().unwrap();
    assert_eq!(drawing.drawn(), Some(drawn));
    drop(drawing);
    beside.load(load(30)).unwrap().begin().unwrap();
    // The first Drawing has gone with its statement.
    let groups = || {
        beside
            .made
            .as_ref()
            .unwrap()
            .generators
            .groups()
            .sum::<u64>()
    };
    let before = groups();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(groups(), before);
}
