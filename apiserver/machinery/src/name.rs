//! Name rules of RFC 1123, RFC 1035 and of labels, with upstream's messages.
