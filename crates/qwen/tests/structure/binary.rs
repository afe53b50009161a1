//! The program is built so that a memory error is hard to exploit (docs/decisions/0014-hardened-binary.md).

use std::fs;

const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const STACK: u32 = 0x6474_e551;
const RELRO: u32 = 0x6474_e552;

/// The parts of an ELF file for 64 bits, least significant byte first.
struct Elf(Vec<u8>);

impl Elf {
    fn number(&self, at: usize, length: usize) -> u64 {
        self.0[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn place(&self, at: usize, length: usize) -> usize {
        usize::try_from(self.number(at, length)).unwrap()
    }

    /// The kind, flags, offset and size of each segment.
    fn segments(&self) -> Vec<(u32, u32, usize, usize)> {
        let (start, size, count) = (self.place(32, 8), self.place(54, 2), self.place(56, 2));
        let headers = (0..count).map(|number| start + number * size);
        let half = |at: usize| u32::try_from(self.number(at, 4)).unwrap();
        headers.map(|at| (half(at), half(at + 4), self.place(at + 8, 8), self.place(at + 32, 8))).collect()
    }

    /// The tags and values for the dynamic loader.
    fn dynamic(&self) -> Vec<(u64, u64)> {
        let segment = self.segments().into_iter().find(|segment| segment.0 == DYNAMIC);
        let (_, _, offset, size) = segment.unwrap();
        let entries = (offset..offset + size).step_by(16);
        entries.map(|at| (self.number(at, 8), self.number(at + 8, 8))).collect()
    }

    fn mentions(&self, name: &str) -> bool {
        self.0.windows(name.len()).any(|window| window == name.as_bytes())
    }
}

#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_env = "gnu"))]
fn the_program_has_random_addresses_read_only_tables_and_protected_stacks() {
    let elf = Elf(fs::read(env!("CARGO_BIN_EXE_qwen")).unwrap());
    assert_eq!(&elf.0[..6], b"\x7fELF\x02\x01");
    let segments = elf.segments();
    assert!(segments.iter().any(|segment| segment.0 == INTERPRETER), "a program, not a library");
    if option_env!("QWEN_BUILD_NO_PIE") != Some("1") {
        assert_eq!(elf.number(16, 2), 3, "position-independent");
    }
    assert!(segments.iter().any(|segment| segment.0 == RELRO), "tables are read-only after the start");
    let (bind_now, flags, flags_1) = (24, 30, 0x6fff_fffb);
    let binds_at_start = elf.dynamic().into_iter().any(|(tag, value)| {
        tag == bind_now || (tag == flags && value & 8 != 0) || (tag == flags_1 && value & 1 != 0)
    });
    assert!(binds_at_start, "all functions are bound at the start, so that their table is read-only too");
    let stack = segments.iter().find(|segment| segment.0 == STACK).unwrap();
    assert_eq!(stack.1 & 1, 0, "the stack is not executable");
    assert!(elf.mentions("__stack_chk_fail"), "C code checks its stack");
}

#[test]
fn c_code_is_compiled_with_protected_stacks() {
    let settings =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cargo/config.toml")).unwrap();
    assert!(settings.contains("CFLAGS = \"-fstack-protector-strong\""), "{settings}");
}
