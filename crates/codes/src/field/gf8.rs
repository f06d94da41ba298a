//! GF(2^8) modulo 0x11d.

/// The reducing polynomial.
pub const POLYNOMIAL: u16 = 0x11d;

const TABLES: ([u8; 510], [u8; 256]) = {
    let (mut exp, mut log) = ([0u8; 510], [0u8; 256]);
    let (mut value, mut power) = (1u16, 0);
    while power < 255 {
        // No truncation: the value is below 256 after reduction, the power below 255.
        exp[power] = value.to_le_bytes()[0];
        exp[power + 255] = value.to_le_bytes()[0];
        log[value as usize] = power.to_le_bytes()[0];
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        power += 1;
    }
    (exp, log)
};

/// Powers of the generator 2, for exponents below 510.
pub(crate) const EXP: [u8; 510] = TABLES.0;
/// Logarithms to base 2 of all elements but zero.
pub(crate) const LOG: [u8; 256] = TABLES.1;

/// Returns the product.
#[must_use]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// Returns the inverse.
///
/// # Panics
/// When `a` is zero.
#[must_use]
pub const fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    EXP[255 - LOG[a as usize] as usize]
}

/// Returns multiplication by `c` as a bit matrix for the GFNI affine instruction: byte `7 - i` has
/// the bits of the operand whose sum is bit `i` of the product.
#[must_use]
pub const fn affine(c: u8) -> u64 {
    let mut matrix = [0u8; 8];
    let mut column = 0;
    while column < 8 {
        let product = mul(c, 1 << column);
        let mut row = 0;
        while row < 8 {
            matrix[7 - row] |= ((product >> row) & 1) << column;
            row += 1;
        }
        column += 1;
    }
    u64::from_le_bytes(matrix)
}

/// [`affine`] of every constant: kernels and plans look the matrices up.
pub(crate) static AFFINE: [u64; 256] = {
    let (mut matrices, mut c) = ([0; 256], 0usize);
    while c < matrices.len() {
        matrices[c] = affine(c.to_le_bytes()[0]);
        c += 1;
    }
    matrices
};

/// [`nibbles`] of every constant.
pub(crate) static NIBBLES: [[[u8; 16]; 2]; 256] = {
    let (mut tables, mut c) = ([[[0; 16]; 2]; 256], 0usize);
    while c < tables.len() {
        tables[c] = nibbles(c.to_le_bytes()[0]);
        c += 1;
    }
    tables
};

/// Returns the products by `c` as two tables of 16: of the low and of the high four bits of the
/// operand.
#[must_use]
pub const fn nibbles(c: u8) -> [[u8; 16]; 2] {
    let mut tables = [[0u8; 16]; 2];
    let mut nibble = 0u8;
    while nibble < 16 {
        tables[0][nibble as usize] = mul(c, nibble);
        tables[1][nibble as usize] = mul(c, nibble << 4);
        nibble += 1;
    }
    tables
}
