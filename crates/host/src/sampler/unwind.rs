//! Walks a thread's stack in a signal handler, by the compilers' exception tables (`.eh_frame`). The tables are found
//! beforehand, and the walk allocates nothing.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, ParsedEhFrameHdr, Register, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow,
};
use std::fmt;
use std::ops::Range;

/// Whether this processor's registers are known here: only `x86_64`'s are.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");

type Slice = EndianSlice<'static, NativeEndian>;

/// The loaded executable and libraries. No library is unloaded again, because nothing here closes one.
#[derive(Debug)]
pub struct Modules(Vec<Module>);

#[derive(Debug)]
struct Module {
    code: Range<u64>,
    header: ParsedEhFrameHdr<Slice>,
    frames: EhFrame<Slice>,
    bases: BaseAddresses,
}

impl Modules {
    /// The modules loaded now.
    pub fn loaded() -> Self {
        let mut modules = Self(Vec::new());
        // SAFETY: the callback is called before this returns, with this pointer; it does not unwind.
        unsafe { libc::dl_iterate_phdr(Some(handle_module), (&raw mut modules).cast()) };
        modules
    }

    /// Where the function at `address` begins and ends.
    pub fn function(&self, address: u64) -> Option<(u64, u64)> {
        let module = self.find(address)?;
        let table = module.header.table()?;
        let entry = table.fde_for_address(&module.frames, &module.bases, address, EhFrame::cie_from_offset).ok()?;
        Some((entry.initial_address(), entry.initial_address() + entry.len()))
    }

    fn find(&self, address: u64) -> Option<&Module> {
        self.0.iter().find(|module| module.code.contains(&address))
    }
}

unsafe extern "C" fn handle_module(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    modules: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader's description of a module, valid during the call; and the pointer from `loaded`.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Modules>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's table with so many segments.
    let segments = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    // SAFETY: segments of a loaded, permanent module.
    modules.0.extend(unsafe { read_module(info.dlpi_addr, segments) });
    0
}

/// # Safety
/// `segments` belong to a module loaded at `base` for as long as the process runs.
unsafe fn read_module(base: u64, segments: &[libc::Elf64_Phdr]) -> Option<Module> {
    let range = |segment: &libc::Elf64_Phdr| base + segment.p_vaddr..base + segment.p_vaddr + segment.p_memsz;
    let loaded = || segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
    let code = range(loaded().find(|segment| segment.p_flags & libc::PF_X != 0)?);
    let header_at = range(segments.iter().find(|segment| segment.p_type == libc::PT_GNU_EH_FRAME)?);
    let bytes = |range: Range<u64>| {
        // SAFETY: within a readable segment of that module, as the caller promises.
        unsafe { std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize) }
    };
    let bases = BaseAddresses::default().set_eh_frame_hdr(header_at.start).set_text(code.start);
    let header = EhFrameHdr::new(bytes(header_at), NativeEndian).parse(&bases, 8).ok()?;
    let start = header.eh_frame_ptr().direct().ok()?;
    // The header does not say how long the tables are. They end with the segment at the latest.
    let end = loaded().map(range).find(|range| range.contains(&start))?.end;
    let frames = EhFrame::new(bytes(start..end), NativeEndian);
    Some(Module { code, header, frames, bases: bases.set_eh_frame(start) })
}

/// DWARF's numbers of registers (System V ABI for AMD64, figure 3.36): the stack pointer, the return address, and how many
/// there are.
const STACK_POINTER: usize = 7;
const RETURN_ADDRESS: usize = 16;
const REGISTERS: usize = 17;

/// A frame's registers. Registers a function need not restore keep the innermost frame's values; no rule needs them.
#[derive(Clone, Debug)]
pub struct Registers([u64; REGISTERS]);

impl Registers {
    /// The interrupted code's registers.
    ///
    /// # Safety
    /// `context` is a signal handler's argument.
    #[cfg(target_arch = "x86_64")]
    pub unsafe fn of_context(context: *const libc::ucontext_t) -> Self {
        use libc::{
            REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP, REG_RBX, REG_RCX,
            REG_RDI, REG_RDX, REG_RIP, REG_RSI, REG_RSP,
        };
        const ORDER: [libc::c_int; REGISTERS] = [
            REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
        ];
        // SAFETY: as the caller promises.
        let saved = unsafe { &(*context).uc_mcontext.gregs };
        Self(ORDER.map(|register| saved[register as usize] as u64))
    }

    /// All zeros: this processor's registers are not known here.
    ///
    /// # Safety
    /// None is needed.
    #[cfg(not(target_arch = "x86_64"))]
    pub unsafe fn of_context(_context: *const libc::ucontext_t) -> Self {
        Self([0; REGISTERS])
    }

    /// The instruction about to run.
    pub const fn instruction(&self) -> u64 {
        self.0[RETURN_ADDRESS]
    }

    pub const fn stack_pointer(&self) -> u64 {
        self.0[STACK_POINTER]
    }
}

/// Walks from a frame to its caller.
pub struct Walker(Box<UnwindContext<usize, InPlace>>);

impl fmt::Debug for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walker")
    }
}

/// Storage without allocation for every register's rules, and for as many saved rows as compilers use.
struct InPlace;

impl UnwindContextStorage<usize> for InPlace {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

const _: () = assert!(size_of::<<InPlace as UnwindContextStorage<usize>>::Rules>() < 4096);

impl Walker {
    pub fn new() -> Self {
        Self(Box::new(UnwindContext::new_in()))
    }

    /// Turns the registers of the function at `at` into its caller's. It reads only `stack`. `None` at the outermost
    /// frame, and if the tables have no rule.
    pub fn step(&mut self, modules: &Modules, at: u64, registers: &mut Registers, stack: Range<u64>) -> Option<()> {
        let module = modules.find(at)?;
        let row = module
            .header
            .table()?
            .unwind_info_for_address(&module.frames, &module.bases, &mut self.0, at, EhFrame::cie_from_offset)
            .ok()?;
        let old = |register: Register| registers.0.get(usize::from(register.0)).copied();
        // Only the procedure linkage table uses expressions, for a few instructions.
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let frame = old(*register)?.wrapping_add_signed(*offset);
        let mut caller = registers.clone();
        for (register, rule) in row.registers() {
            let Some(place) = caller.0.get_mut(usize::from(register.0)) else { continue };
            *place = match *rule {
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => read(frame.wrapping_add_signed(offset), &stack)?,
                RegisterRule::ValOffset(offset) => frame.wrapping_add_signed(offset),
                RegisterRule::Register(other) => old(other)?,
                // The thread's first function has no caller.
                _ if usize::from(register.0) == RETURN_ADDRESS => return None,
                _ => continue,
            };
        }
        caller.0[STACK_POINTER] = frame;
        // A stack grows downwards: outer frames lie higher.
        if frame <= registers.stack_pointer() || caller.instruction() == 0 {
            return None;
        }
        *registers = caller;
        Some(())
    }
}

/// A stack word.
fn read(address: u64, stack: &Range<u64>) -> Option<u64> {
    let whole = address.is_multiple_of(8) && stack.start <= address && address.checked_add(8)? <= stack.end;
    // SAFETY: aligned, and between the stack pointer and the end of the thread's stack.
    whole.then(|| unsafe { (address as *const u64).read_volatile() })
}

/// The end of the calling thread's stack; 0 if unknown, and then the stack is not read.
pub fn stack_top() -> u64 {
    // SAFETY: all zeros is a valid value for this plain structure; the next call fills it in.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: about the calling thread, into `attributes`.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) } != 0 {
        return 0;
    }
    let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: `attributes` was filled in, and is not used after it is destroyed.
    let found = unsafe {
        let found = libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        found
    };
    if found == 0 { lowest as u64 + size as u64 } else { 0 }
}
