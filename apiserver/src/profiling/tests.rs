use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;
use runtime::Tasks;
use tokio::time::Instant;

use super::form::Profile;
use super::*;

fn read(bytes: &[u8]) -> Profile {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    Profile::decode(plain.as_slice()).unwrap()
}

/// Something to be found in a profile.
#[inline(never)]
fn keeps_a_core_busy(stop: &CancellationToken) -> u64 {
    let mut sum = 1_u64;
    while !stop.is_cancelled() {
        for number in 0..10_000_u64 {
            sum = std::hint::black_box(sum.rotate_left(7) ^ number);
        }
    }
    sum
}

/// That what names a string, a function or a location names one that is there.
fn is_whole(profile: &Profile) {
    let strings = profile.string_table.len();
    let is_string = |number: i64| usize::try_from(number).is_ok_and(|number| number < strings);
    assert_eq!(profile.string_table[0], "");
    let functions = profile.function.len() as u64;
    for (index, function) in profile.function.iter().enumerate() {
        assert_eq!(function.id, index as u64 + 1);
        let names = [function.name, function.system_name, function.filename];
        assert!(names.into_iter().all(is_string), "{function:?}");
    }
    for (index, location) in profile.location.iter().enumerate() {
        assert_eq!(location.id, index as u64 + 1);
        assert!(!location.line.is_empty(), "{location:?}");
        let known = |line: &form::Line| (1..=functions).contains(&line.function_id);
        assert!(location.line.iter().all(known), "{location:?}");
    }
    let locations = profile.location.len() as u64;
    for sample in &profile.sample {
        assert!(sample.location_id.iter().all(|id| (1..=locations).contains(id)), "{sample:?}");
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert_eq!(sample.value[1], sample.value[0] * profile.period);
    }
}

/// One test, as there is one profile at a time in a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn profiles_are_taken_one_at_a_time() {
    let ending = CancellationToken::new();
    let profiler = Profiler::new(None, ending.clone());
    let (stop, busy) = (CancellationToken::new(), Tasks::new());
    let stopped = stop.clone();
    let work = busy.spawn_blocking(move || keeps_a_core_busy(&stopped));
    let mut first = Box::pin(profiler.take(Duration::from_secs(1)));
    // It has begun once it was polled.
    assert!(futures::poll!(first.as_mut()).is_pending());
    let second = profiler.take(Duration::from_secs(1)).await;
    assert!(matches!(second, Err(ProfileError::Busy)), "{second:?}");
    let profile = read(&first.await.unwrap());
    stop.cancel();
    work.await.unwrap();
    is_whole(&profile);
    let text = |number: i64| &*profile.string_table[usize::try_from(number).unwrap()];
    let types: Vec<_> = profile.sample_type.iter().map(|t| (text(t.kind), text(t.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!(profile.period, 10_000_000);
    assert!(profile.duration_nanos >= 1_000_000_000, "{}", profile.duration_nanos);
    let ours = profile.function.iter().any(|f| text(f.name).contains("keeps_a_core_busy"));
    let names: Vec<_> = profile.function.iter().map(|function| text(function.name)).collect();
    assert!(ours, "{names:#?}");

    // Nobody waits for it any more: the place is free long before its time is over.
    let begun = Instant::now();
    let mut given_up = Box::pin(profiler.take(Duration::from_secs(60)));
    assert!(futures::poll!(given_up.as_mut()).is_pending());
    drop(given_up);
    drop(profiler.place.acquire().await.unwrap());
    // Nor when the server ends.
    let mut ended = Box::pin(profiler.take(Duration::from_secs(60)));
    assert!(futures::poll!(ended.as_mut()).is_pending());
    ending.cancel();
    assert!(matches!(ended.await, Err(ProfileError::Ending)));
    drop(profiler.place.acquire().await.unwrap());
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}
