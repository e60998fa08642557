//! One object.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use super::{Form, metadata, table, whole};
use crate::http::body::Body;
use crate::http::negotiate::{Encoding, Shape};
use crate::registry::View;

/// The answer that holds one object.
pub(crate) fn object(view: &View, form: &Form) -> Response<Body> {
    let Form { accepted, resource, include, now, .. } = form;
    let (bytes, media_type) = match accepted.shape {
        Shape::Table(version) => {
            let table = table::single(&view.json, resource, version, *include, *now, true);
            whole(table, Encoding::Json)
        }
        Shape::Metadata(version) => {
            whole(metadata::partial(&view.json, version), accepted.encoding)
        }
        Shape::Object | Shape::Discovery => whole(view.json.clone(), accepted.encoding),
    };
    let mut response = Response::new(Body::full(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
