//! Types as clusters serve them: a schema, and what stands around it.

mod around;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compare::{Sides, compare};
use crate::merge::merge;
use crate::node::Node;
use crate::report::{Difference, Report, said};
use crate::view::MAX_STEPS_TOGETHER;

/// One version of a type, as a cluster serves it. As JSON it is the `spec` of an APIResourceSchema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Type {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// What it is called.
    pub names: Names,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The structural schema of objects.
    pub schema: Value,
    /// Parts that are written apart from the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresources: Option<Subresources>,
    /// What tables of objects show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Fields that lists can be selected by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectable_fields: Vec<String>,
}

/// What a type is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    /// The resource.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// The kind of objects.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// Short names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// Parts that are written apart from the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subresources {
    /// Whether the status is one.
    pub status: bool,
    /// Where the number of replicas is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// Where an object holds the number of its replicas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// The wanted number.
    pub spec_replicas_path: String,
    /// The number there is.
    pub status_replicas_path: String,
    /// The selector of what is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector_path: Option<String>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The type of what it shows.
    #[serde(rename = "type")]
    pub type_: String,
    /// What it shows of an object.
    pub json_path: String,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Above zero, only wide tables show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// What several clusters have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// The type that those who agree all take; `None` if there is nobody.
    pub merged: Option<Type>,
    /// Where they differ, though they agree.
    pub differences: Vec<Difference>,
    /// Who doesn't agree, sorted by target.
    pub left: Vec<Left>,
}

/// A target that others can't agree with.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// The target.
    pub target: String,
    /// Why not.
    pub differences: Vec<Difference>,
}

/// Types that are one, and the targets that serve it.
struct Group<'a> {
    ty: &'a Type,
    /// What equal types have in common.
    hash: u64,
    /// The type as text, by which groups are sorted.
    text: String,
    node: Node,
    targets: Vec<String>,
}

/// Reports what keeps objects of one type from being objects of another; `labels` say of whom each is.
///
/// If nothing in the list is blocking, nothing does.
pub fn differences(existing: &Type, new: &Type, labels: [&str; 2]) -> Vec<Difference> {
    let mut report = Report::default();
    let [existing_label, new_label] = labels.map(|label| [label.to_owned()]);
    let sides = Sides { existing: &existing_label, new: &new_label };
    around::compare(existing, new, sides, &mut report);
    let schemas = (Node::read(&existing.schema), Node::read(&new.schema));
    match schemas {
        (Ok(existing), Ok(new)) => compare(&existing, &new, sides, &mut report),
        (existing, new) => {
            let failed = [(existing, sides.existing), (new, sides.new)];
            for (failure, side) in failed.into_iter().filter_map(|(n, side)| Some((n.err()?, side)))
            {
                report.add(unreadable(&failure, side));
            }
        }
    }
    report.finish()
}

/// Finds what types have in common. Each is given with its target and the time (RFC 3339) since when
/// the target has it: where not all can agree, those who were first do.
///
/// The order of `types` makes no difference.
pub fn agree(types: &[(&str, &str, &Type)]) -> Agreement {
    let mut sorted: Vec<&(&str, &str, &Type)> = types.iter().collect();
    sorted.sort_by_key(|(target, since, _)| (*since, *target));
    let mut left: Vec<Left> = Vec::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut steps = 0;
    for (target, _, ty) in sorted {
        // Mostly it is the same in memory, too.
        let same = groups.iter_mut().find(|group| std::ptr::eq(group.ty, *ty));
        let hash = same.as_ref().map_or_else(|| hash(ty), |group| group.hash);
        let is_same = |group: &&mut Group<'_>| group.hash == hash && group.ty == *ty;
        let same = groups.iter_mut().find(is_same);
        if let Some(group) = same {
            group.targets.push((*target).to_owned());
            continue;
        }
        match Node::read(&ty.schema) {
            Ok(node) => groups.push(Group {
                ty,
                hash,
                text: serde_json::to_string(ty).unwrap_or_default(),
                node,
                targets: vec![(*target).to_owned()],
            }),
            Err(failure) => left.push(Left {
                target: (*target).to_owned(),
                differences: vec![unreadable(&failure, &[(*target).to_owned()])],
            }),
        }
    }
    let mut agreed: Option<(Type, Vec<Difference>)> = None;
    // Mostly all agree. If not, they are asked one after another.
    let mut report = Report::default();
    if groups.len() > 1
        && let Some(merged) = together(&groups, &mut report, &mut steps)
    {
        agreed = Some((merged, report.finish()));
        groups.clear();
    }
    let mut joined: Vec<Group<'_>> = Vec::new();
    for group in groups {
        if steps > MAX_STEPS_TOGETHER {
            let why =
                "there are too many different schemas to see whether this one fits".to_owned();
            let said = said([(String::new(), group.targets.as_slice())]);
            let difference = Difference::new(true, "", "schema", why, said);
            let one = |target| Left { target, differences: vec![difference.clone()] };
            left.extend(group.targets.into_iter().map(one));
            continue;
        }
        joined.push(group);
        let mut report = Report::default();
        let merged = together(&joined, &mut report, &mut steps);
        let differences = report.finish();
        match merged {
            // Where there is only one, it is taken as it is spelled.
            Some(merged) => {
                let alone = joined.first().filter(|_| joined.len() == 1);
                let merged = alone.map_or(merged, |group| group.ty.clone());
                agreed = Some((merged, differences));
            }
            None => {
                let alone = joined.pop();
                let blocking: Vec<_> =
                    { differences.into_iter() }.filter(|difference| difference.blocking).collect();
                left.extend(
                    alone
                        .into_iter()
                        .flat_map(|group| group.targets)
                        .map(|target| Left { target, differences: blocking.clone() }),
                );
            }
        }
    }
    left.sort_by(|a, b| a.target.cmp(&b.target));
    let (merged, differences) = agreed.map_or((None, Vec::new()), |(ty, list)| (Some(ty), list));
    Agreement { merged, differences, left }
}

/// Merges types, in an order of their own.
fn together(groups: &[Group<'_>], report: &mut Report, steps: &mut u64) -> Option<Type> {
    let mut sorted: Vec<&Group<'_>> = groups.iter().collect();
    sorted.sort_by(|a, b| a.text.cmp(&b.text));
    let types: Vec<&Type> = sorted.iter().map(|group| group.ty).collect();
    let nodes: Vec<&Node> = sorted.iter().map(|group| &group.node).collect();
    let targets: Vec<Vec<String>> = sorted.iter().map(|group| group.targets.clone()).collect();
    let around = around::merge(&types, &targets, report);
    let node = merge(&nodes, &targets, report, steps)?;
    let merged = Type { schema: node.print(), ..around? };
    (!report.is_blocked()).then_some(merged)
}

/// A hash of all that a type says.
fn hash(ty: &Type) -> u64 {
    struct Text(DefaultHasher);
    impl std::io::Write for Text {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut text = Text(DefaultHasher::new());
    // What can't be written is compared with all others that can't.
    serde_json::to_writer(&mut text, ty).ok();
    text.0.finish()
}

fn unreadable(failure: &crate::node::Unreadable, targets: &[String]) -> Difference {
    let said = said([("unreadable".to_owned(), targets)]);
    Difference::new(true, &failure.path, "schema", failure.why.to_owned(), said)
}

/// The names in a list, sorted, each once.
fn sorted(names: &[String]) -> BTreeSet<&String> {
    names.iter().collect()
}
