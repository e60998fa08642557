//! What stands around a schema: scope, names, subresources, columns.

use std::collections::BTreeSet;

use super::{Column, Names, Scale, Subresources, Type, sorted};
use crate::compare::Sides;
use crate::report::{Difference, Report, said};

/// Reports what differs between two types but for their schemas.
pub(super) fn compare(existing: &Type, new: &Type, sides: Sides<'_>, report: &mut Report) {
    let mut tell = |blocking: bool, what: &str, why: &str, says: [String; 2]| {
        if says[0] != says[1] {
            let [old, new] = says;
            let said = said([(old, sides.existing), (new, sides.new)]);
            report.add(Difference::new(blocking, "", what, why.to_owned(), said));
        }
    };
    let both = [existing, new];
    let why = "objects live in different places";
    tell(true, "scope", why, both.map(|ty| ty.scope.clone()));
    tell(true, "kind", "objects are of different kinds", both.map(|ty| ty.names.kind.clone()));
    tell(false, "names", "it is called differently", both.map(|ty| names(&ty.names)));
    tell(false, "subresources", "its parts differ", both.map(subresources));
    tell(false, "columns", "tables show other things", both.map(columns));
    let fields = both.map(|ty| join(sorted(&ty.selectable_fields)));
    tell(false, "selectableFields", "lists are selected by other fields", fields);
}

/// Merges all but the schemas; `None` if they don't fit, which is reported.
pub(super) fn merge(types: &[&Type], targets: &[Vec<String>], report: &mut Report) -> Option<Type> {
    let first = types.first()?;
    let mut told = |blocking: bool, what: &str, why: &str, says: &dyn Fn(&Type) -> String| {
        let differs = types.iter().any(|ty| says(ty) != says(first));
        if differs {
            let all = types.iter().map(|ty| says(ty)).zip(targets.iter().map(Vec::as_slice));
            report.add(Difference::new(blocking, "", what, why.to_owned(), said(all)));
        }
        differs
    };
    let scopes = told(true, "scope", "objects live in different places", &|ty| ty.scope.clone());
    let kinds = told(true, "kind", "objects are of different kinds", &|ty| ty.names.kind.clone());
    told(false, "names", "it is called differently; short names are put together", &|ty| {
        names(&ty.names)
    });
    told(false, "subresources", "its parts differ", &subresources);
    told(false, "columns", "tables show what all show", &columns);
    told(false, "selectableFields", "lists are selected by fields that all select by", &|ty| {
        join(sorted(&ty.selectable_fields))
    });
    if scopes || kinds {
        return None;
    }
    let smallest = |of: fn(&Names) -> &String| {
        types.iter().map(|ty| of(&ty.names)).min().cloned().unwrap_or_default()
    };
    let all = |of: fn(&Names) -> &Vec<String>| -> Vec<String> {
        let names: BTreeSet<&String> = types.iter().flat_map(|ty| of(&ty.names)).collect();
        names.into_iter().cloned().collect()
    };
    let mut fields = sorted(&first.selectable_fields);
    for ty in types {
        let own = sorted(&ty.selectable_fields);
        fields.retain(|field| own.contains(field));
    }
    let shown: Vec<BTreeSet<_>> =
        types.iter().map(|ty| ty.columns.iter().map(heading).collect()).collect();
    Some(Type {
        group: first.group.clone(),
        version: first.version.clone(),
        names: Names {
            plural: first.names.plural.clone(),
            singular: smallest(|names| &names.singular),
            kind: first.names.kind.clone(),
            list_kind: smallest(|names| &names.list_kind),
            short_names: all(|names| &names.short_names),
            categories: all(|names| &names.categories),
        },
        scope: first.scope.clone(),
        schema: serde_json::Value::Null,
        subresources: parts(types),
        columns: { first.columns.iter() }
            .filter(|column| shown.iter().all(|shown| shown.contains(&heading(column))))
            .cloned()
            .collect(),
        selectable_fields: fields.into_iter().cloned().collect(),
    })
}

/// A part that some have is one at the hub: a status is written apart from the rest wherever anybody
/// does so. Numbers of replicas are one if none has them in another place.
fn parts(types: &[&Type]) -> Option<Subresources> {
    let all = || types.iter().filter_map(|ty| ty.subresources.as_ref());
    let scales: BTreeSet<&Scale> = all().filter_map(|parts| parts.scale.as_ref()).collect();
    let scale = scales.first().filter(|_| scales.len() == 1).map(|scale| (*scale).clone());
    let parts = Subresources { status: all().any(|parts| parts.status), scale };
    (parts != Subresources::default()).then_some(parts)
}

/// What a column shows, and under which heading.
fn heading(column: &Column) -> (&str, &str, &str) {
    (&column.name, &column.type_, &column.json_path)
}

fn names(names: &Names) -> String {
    let Names { singular, list_kind, short_names, categories, .. } = names;
    let lists = [short_names, categories].map(|list| join(sorted(list)));
    format!("{singular} {list_kind} {}", lists.join(" ")).trim_end().to_owned()
}

fn subresources(ty: &Type) -> String {
    let Some(parts) = &ty.subresources else { return String::new() };
    let status = parts.status.then(|| "status".to_owned());
    let scale = parts.scale.as_ref().map(|scale| {
        let Scale { spec_replicas_path, status_replicas_path, label_selector_path } = scale;
        let selector = label_selector_path.as_deref().unwrap_or_default();
        format!("scale ({spec_replicas_path} {status_replicas_path} {selector})")
    });
    status.into_iter().chain(scale).collect::<Vec<_>>().join(", ")
}

fn columns(ty: &Type) -> String {
    let text = |column: &Column| format!("{} {} {}", column.name, column.type_, column.json_path);
    ty.columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn join(names: BTreeSet<&String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(",")
}
