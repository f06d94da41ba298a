//! Prints the instruction-set levels that kernels can use on this processor, one name per line, the
//! simplest first.
//!
//! Each name is a value for the variable `FULGURITE_ISA`.

#[expect(clippy::print_stdout, reason = "the output of a program")]
fn main() {
    for isa in fulgurite_codes::Isa::supported() {
        println!("{}", isa.name());
    }
}
