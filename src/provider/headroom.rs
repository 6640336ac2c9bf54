//! How much of a rate limit is left, by a reply's headers.

use crate::model::HttpReply;

/// The smallest share, 0 to 1, that remains of any rate limit that the reply names. Names differ from provider to
/// provider, but everywhere the two headers of a limit differ in two words only (`x-ratelimit-remaining-tokens`,
/// `x-ratelimit-limit-tokens`; `anthropic-ratelimit-tokens-remaining`, `anthropic-ratelimit-tokens-limit`). `None`
/// where no pair of usable numbers is there.
pub fn headroom(reply: &HttpReply) -> Option<f64> {
    let number =
        |value: &str| value.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    reply
        .headers
        .iter()
        .filter(|(name, _)| name.contains("remaining"))
        .filter_map(|(name, value)| {
            let limit = number(reply.header(&name.replacen("remaining", "limit", 1))?)?;
            let remaining = number(value)?;
            (limit > 0.0).then(|| (remaining / limit).min(1.0))
        })
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(headers: &[(&str, &str)]) -> HttpReply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HttpReply { status: 200, headers, body: bytes::Bytes::new() }
    }

    #[test]
    fn the_tightest_limit_counts() {
        let tight = reply(&[
            ("x-ratelimit-limit-requests", "100"),
            ("x-ratelimit-remaining-requests", "90"),
            ("x-ratelimit-limit-tokens", "1000"),
            ("x-ratelimit-remaining-tokens", "50"),
        ]);
        assert_eq!(headroom(&tight), Some(0.05));
        let other = reply(&[
            ("anthropic-ratelimit-tokens-remaining", "8"),
            ("anthropic-ratelimit-tokens-limit", "16"),
        ]);
        assert_eq!(headroom(&other), Some(0.5));
    }

    #[test]
    fn nonsense_is_no_limit() {
        for headers in [
            vec![],
            vec![("x-ratelimit-remaining-requests", "5")],
            vec![("x-ratelimit-remaining-requests", "-1"), ("x-ratelimit-limit-requests", "10")],
            vec![("x-ratelimit-remaining-requests", "1"), ("x-ratelimit-limit-requests", "0")],
            vec![("x-ratelimit-remaining-requests", "NaN"), ("x-ratelimit-limit-requests", "10")],
        ] {
            assert_eq!(headroom(&reply(&headers)), None, "{headers:?}");
        }
    }
}
