// A stream of bytes, in which a message is as many bytes as both ends know.

/** Calls `handle` with each message of `size` bytes, whatever pieces they come in. */
export function cut(size, handle) {
  let pieces = [];
  let missing = size;
  return (piece) => {
    while (piece.length >= missing) {
      pieces.push(piece.subarray(0, missing));
      piece = piece.subarray(missing);
      const whole = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
      [pieces, missing] = [[], size];
      handle(whole);
    }
    if (piece.length > 0) {
      pieces.push(piece);
      missing -= piece.length;
    }
  };
}
