//! The page for people, and what it consists of.

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

use crate::reply::{self, Reply};

/// The page loads what is listed here and nothing else, whoever sends it something.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each file: its path, its type, and what is in it.
const FILES: [(&str, &str, &str); 5] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page.css", STYLE, include_str!("page/page.css")),
    ("/page.js", SCRIPT, include_str!("page/page.js")),
    ("/judge.js", SCRIPT, include_str!("page/judge.js")),
    ("/picture.js", SCRIPT, include_str!("page/picture.js")),
];

/// The file at this path.
pub fn file(path: &str) -> Option<Reply> {
    let (_, content_type, text) = FILES.iter().find(|(name, _, _)| *name == path)?;
    let mut reply = reply::text(StatusCode::OK, content_type, *text);
    let headers = reply.headers_mut();
    for (name, value) in [("content-security-policy", POLICY), ("referrer-policy", "no-referrer")] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that is not served would stop the whole page.
    #[test]
    fn everything_that_the_page_loads_is_served() {
        let marks = ["from './", "href=\"/", "src=\"/"];
        let loads = |text: &'static str| {
            marks.into_iter().flat_map(move |mark| text.split(mark).skip(1)).filter_map(|rest| {
                let name = rest.split(['"', '\'']).next()?;
                (name.ends_with(".js") || name.ends_with(".css")).then_some(name)
            })
        };
        let loaded: Vec<&str> = FILES.iter().flat_map(|(_, _, text)| loads(text)).collect();
        assert!(loaded.len() >= FILES.len() - 1, "{loaded:?}");
        for name in loaded {
            assert!(file(&format!("/{name}")).is_some(), "{name} is not served");
        }
    }
}
