//! W3C Trace Context: the position of a span, and its encoding between programs.

use std::sync::Arc;

use qwen_events::TraceContext;

/// The longest `tracestate` that is propagated; a longer one is dropped.
const MAX_STATE: usize = 512;

/// The position of a span in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpanContext {
    /// The trace id; never 0.
    pub trace: u128,
    /// The span id; never 0.
    pub span: u64,
    /// True if the trace is recorded.
    pub sampled: bool,
    /// The `tracestate` of the systems before us, propagated unchanged.
    pub state: Option<Arc<str>>,
}

impl SpanContext {
    /// The first span of a new trace.
    pub fn root() -> Self {
        Self { trace: fastrand::u128(1..), span: fastrand::u64(1..), sampled: true, state: None }
    }

    /// A child span of this one.
    pub fn child(&self) -> Self {
        Self { span: fastrand::u64(1..), ..self.clone() }
    }

    /// Parses the context from another program; none if it is malformed. A malformed `tracestate` is dropped.
    pub fn parse(context: &TraceContext) -> Option<Self> {
        let text = context.traceparent.trim();
        let bytes = text.as_bytes();
        let version = hex(text.get(..2)?)?;
        // Later versions may append fields after a dash.
        let whole = bytes.len() == 55 || version > 0 && bytes.get(55) == Some(&b'-');
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if version == 0xff || !whole || !dashes {
            return None;
        }
        let trace = hex(text.get(3..35)?)?;
        let span = u64::try_from(hex(text.get(36..52)?)?).ok()?;
        let flags = hex(text.get(53..55)?)?;
        if trace == 0 || span == 0 {
            return None;
        }
        let fits = |state: &&Arc<str>| {
            state.len() <= MAX_STATE
                && !state.is_empty()
                && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let state = context.tracestate.as_ref().filter(fits).cloned();
        Some(Self { trace, span, sampled: flags & 1 == 1, state })
    }

    /// The context that is sent to the next program.
    pub fn trace_context(&self) -> TraceContext {
        let Self { trace, span, sampled, state } = self;
        let traceparent = format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(*sampled)).into();
        TraceContext { traceparent, tracestate: state.clone() }
    }
}

/// Parses a number in lower-case hexadecimal digits, the only ones that the standard allows.
fn hex(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.bytes().all(is_digit).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(traceparent: &str) -> Option<SpanContext> {
        SpanContext::parse(&TraceContext { traceparent: traceparent.into(), tracestate: None })
    }

    #[test]
    fn a_traceparent_is_read_as_the_standard_has_it() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = parsed(good).unwrap();
        assert_eq!(
            (context.trace, context.span),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331)
        );
        assert!(context.sampled);
        assert_eq!(&*context.trace_context().traceparent, good);
        assert!(!parsed(&good.replace("-01", "-00")).unwrap().sampled);
        assert!(parsed(&good.replace("-01", "-03")).unwrap().sampled);
        assert!(parsed(&format!("{}-and-more", good.replacen("00", "01", 1))).is_some());
        for bad in [
            "",
            "00",
            "garbage",
            &good.replacen("00", "ff", 1),
            &format!("{good}-more"),
            &format!("{good}0"),
            &good[..54],
            &good.to_uppercase(),
            &good.replace('-', "_"),
            &good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &good.replace("b7ad6b7169203331", &"0".repeat(16)),
            &good.replace("b7ad", "b7ä"),
            &good.replace("b7ad", "+7ad"),
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_tracestate_is_carried_unless_it_cannot_be() {
        let carried = |state: &str| {
            let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into();
            SpanContext::parse(&TraceContext { traceparent, tracestate: Some(state.into()) }).unwrap().state
        };
        assert_eq!(carried("vendor=1,other=2").as_deref(), Some("vendor=1,other=2"));
        for bad in ["", "a=\n", "a=ä", &"x".repeat(MAX_STATE + 1)] {
            assert_eq!(carried(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,70}|[0-9a-f-]{50,60}") {
            if let Some(context) = parsed(&text) {
                prop_assert!(context.trace != 0 && context.span != 0);
            }
        }

        #[test]
        fn what_is_written_is_read_back(trace in 1_u128.., span in 1_u64.., sampled: bool) {
            let context = SpanContext { trace, span, sampled, state: None };
            prop_assert_eq!(SpanContext::parse(&context.trace_context()), Some(context));
        }
    }
}
