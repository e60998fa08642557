use proptest::prelude::{Strategy, any, prop, proptest};

use super::*;

fn key(name: &str) -> Key {
    Key::parse(format!("core/configmaps/root/ns/{name}")).unwrap()
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let value = || prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let previous = prop::option::of((any::<u64>(), any::<u64>(), value()));
    let change = ("[a-z]{1,9}", prop::option::of(value()), previous);
    let change = change.prop_map(|(name, value, previous)| Change {
        key: key(&name),
        value,
        previous: previous.map(|(revision, created, value)| Record {
            key: key(&name),
            value,
            revision: Revision(revision),
            created: Revision(created),
        }),
        revision: Revision(7),
    });
    prop::collection::vec(change, 0..4)
}

fn decode(bytes: &[u8]) -> Result<(u64, Vec<Change>), Malformed> {
    let whole = |value: RawValue<'_>| Ok::<_, Malformed>(Bytes::copy_from_slice(value.bytes));
    let entry = Entry::decode(bytes)?;
    let mut changes = Vec::new();
    for raw in entry.changes() {
        changes.extend(raw?.to_change(Revision(7), whole)?);
    }
    Ok((entry.time, changes))
}

/// Changes as they are written when no value has a part.
fn encode(out: &mut Vec<u8>, time: u64, changes: &[Change]) {
    let raw = changes.iter().map(|change| RawChange {
        key: change.key.as_bytes(),
        value: change.value.as_ref().map(|value| RawValue::plain(value)),
        previous: change.previous.as_ref().map(|record| RawRecord {
            revision: record.revision,
            created: record.created,
            value: RawValue::plain(&record.value),
        }),
    });
    encode_entry(out, time, raw);
}

proptest! {
    #[test]
    fn entries_round_trip(time: u64, changes in changes()) {
        let mut bytes = Vec::new();
        encode(&mut bytes, time, &changes);
        assert_eq!(decode(&bytes).unwrap(), (time, changes));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        // Any answer is right, as long as there is one.
        assert!(decode(&bytes).map_or_else(|error| !error.0.is_empty(), |_| bytes.len() >= 12));
        assert_eq!(RawRecord::decode(&bytes).is_ok(), bytes.len() >= 17);
    }

    #[test]
    fn cut_entries_are_told(changes in changes(), cut: prop::sample::Index) {
        let mut bytes = Vec::new();
        encode(&mut bytes, 1, &changes);
        bytes.truncate(cut.index(bytes.len()));
        assert!(decode(&bytes).is_err());
    }
}

#[test]
fn what_a_later_minor_adds_is_passed_over() {
    let change =
        Change { key: key("a"), value: Some("v".into()), previous: None, revision: Revision(7) };
    let mut bytes = Vec::new();
    encode(&mut bytes, 1, std::slice::from_ref(&change));
    // A field behind the change's own, and something behind all changes.
    let length = u32::try_from(bytes.len() - ENTRY_HEAD - 4 + 3).unwrap();
    bytes[ENTRY_HEAD..ENTRY_HEAD + 4].copy_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(b"newtail");
    assert_eq!(decode(&bytes).unwrap(), (1, vec![change]));

    // A key of unknown form is not shown.
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&1_u64.to_be_bytes());
    bytes.extend_from_slice(&1_u32.to_be_bytes());
    let mut body = vec![0];
    put_bytes(&mut body, b"six/segments/are/not/known/yet");
    put_bytes(&mut bytes, &body);
    assert_eq!(decode(&bytes).unwrap(), (1, vec![]));
}

#[test]
fn records_round_trip() {
    let mut bytes = Vec::new();
    let value = RawValue::plain(b"value");
    let record = RawRecord { revision: Revision(5), created: Revision(3), value };
    record.encode(&mut bytes);
    assert_eq!(bytes, b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x03\0value");
    assert_eq!(RawRecord::decode(&bytes).unwrap(), record);
}

#[test]
fn parted_values_round_trip() {
    let parted = PartedValue { hash: [7; 32], head: b"head", tail: b"tail" };
    let bytes = parted.encode();
    let value = RawValue { bytes: &bytes, parted: true };
    assert_eq!(value.parted().unwrap(), Some(parted));
    assert_eq!(RawValue::plain(&bytes).parted().unwrap(), None);
    for cut in 0..bytes.len() - b"tail".len() {
        assert!(RawValue { bytes: &bytes[..cut], parted: true }.parted().is_err(), "{cut}");
    }
    // Flags say which of the values in the log are parted.
    let previous = RawRecord { revision: Revision(5), created: Revision(3), value };
    let changes = [
        RawChange { key: b"k", value: Some(value), previous: None },
        RawChange { key: b"k", value: None, previous: Some(previous) },
        RawChange { key: b"k", value: Some(RawValue::plain(b"v")), previous: Some(previous) },
    ];
    let mut entry = Vec::new();
    encode_entry(&mut entry, 1, changes.into_iter());
    let decoded = Entry::decode(&entry).unwrap().changes().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(format!("{decoded:?}"), format!("{changes:?}"));
}
