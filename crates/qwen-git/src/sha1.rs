//! SHA-1, which ends an index file. Used to detect damage, not for security.

/// The length of a digest in bytes.
pub(crate) const LENGTH: usize = 20;

/// Returns the SHA-1 digest of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; LENGTH] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut blocks = bytes.chunks_exact(64);
    for block in &mut blocks {
        compress(&mut state, block);
    }
    let mut tail = blocks.remainder().to_vec();
    tail.push(0x80);
    while tail.len() % 64 != 56 {
        tail.push(0);
    }
    tail.extend((bytes.len() as u64).wrapping_mul(8).to_be_bytes());
    for block in tail.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut digest = [0; LENGTH];
    for (out, number) in digest.chunks_exact_mut(4).zip(state) {
        out.copy_from_slice(&number.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut schedule = [0u32; 80];
    for (number, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *number = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    }
    for at in 16..80 {
        schedule[at] =
            (schedule[at - 3] ^ schedule[at - 8] ^ schedule[at - 14] ^ schedule[at - 16]).rotate_left(1);
    }
    let mut mix = *state;
    for (round, number) in schedule.iter().enumerate() {
        let [first, second, third, fourth, fifth] = mix;
        let (mixed, constant) = match round {
            ..20 => ((second & third) | (!second & fourth), 0x5a82_7999),
            20..40 => (second ^ third ^ fourth, 0x6ed9_eba1),
            40..60 => ((second & third) | (second & fourth) | (third & fourth), 0x8f1b_bcdc),
            _ => (second ^ third ^ fourth, 0xca62_c1d6u32),
        };
        let next = first
            .rotate_left(5)
            .wrapping_add(mixed)
            .wrapping_add(fifth)
            .wrapping_add(constant)
            .wrapping_add(*number);
        mix = [next, first, second.rotate_left(30), third, fourth];
    }
    for (kept, added) in state.iter_mut().zip(mix) {
        *kept = kept.wrapping_add(added);
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_equal_the_published_ones() {
        let hex = |bytes: &[u8]| digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&vec![b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}
