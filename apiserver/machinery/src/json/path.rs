//! Where the parser is, without allocation until somebody asks.

/// A path as a list from the innermost step to the root, each on the stack of its parser frame.
#[derive(Debug)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

/// Longest part of a key that a path shows, in bytes; real field names are far below.
const MAX_STEP: usize = 253;

impl Path<'_> {
    /// The path of `key` here, as `spec.containers[0].image`.
    ///
    /// Its length is bounded by the depth times [`MAX_STEP`], so that hostile keys cost nothing.
    pub(super) fn render(&self, key: &str) -> String {
        let mut text = String::new();
        self.write(&mut text);
        push_key(&mut text, key);
        text
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(parent, key) => {
                parent.write(text);
                push_key(text, key);
            }
            Self::Index(parent, index) => {
                parent.write(text);
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
        }
    }
}

fn push_key(text: &mut String, key: &str) {
    if !text.is_empty() {
        text.push('.');
    }
    text.push_str(cut(key));
}

/// The key, or its first bytes.
pub(super) fn cut(key: &str) -> &str {
    key.get(..key.floor_char_boundary(MAX_STEP)).unwrap_or(key)
}
