/** A file of a bank that is refused: the reason and its place in the file. */

/** A place in a file. Lines begin with 1. */
export interface FilePlace {
  line: number;
  /** Null: only the line is known. */
  column: number | null;
  /** The local name of the element, or null outside of all elements. */
  element: string | null;
}

/** A refused file. The message repeats no name, no account and no text of the file but amounts. */
export class BankFileError extends Error {
  readonly line: number;
  readonly column: number | null;
  readonly element: string | null;

  constructor(reason: string, { line, column, element }: FilePlace) {
    const parts = [
      `Line ${line}`,
      column === null ? [] : `column ${column}`,
      element === null ? [] : `<${element}>`,
    ];
    super(`${parts.flat().join(", ")}: ${reason}`);
    this.name = "BankFileError";
    this.line = line;
    this.column = column;
    this.element = element;
  }
}
