#[path = "total.rs"]
mod total;
use total::total;

#[test]
fn sums() {
    assert_eq!(total(&[1, 2, 3]), Some(6));
    assert_eq!(total(&[]), Some(0));
}

#[test]
fn an_overflow_is_none() {
    assert_eq!(total(&[u32::MAX, 1]), None);
    assert_eq!(total(&[u32::MAX, 0]), Some(u32::MAX));
}
