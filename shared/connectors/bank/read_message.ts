/** The part that the readers of all messages share. */

import { BankFileError } from "./bank_file_error.ts";
import type { XmlElement } from "./bank_xml_reader.ts";
import type { BankRecord } from "./read_records.ts";

/** Elements of a container that are kept. An entry or a statement has about 20. */
const KEPT_MAX = 1_000;

/** Takes records in the order of the file. */
export interface Sink {
  add(record: BankRecord): void;
  warn(place: XmlElement, message: string): void;
}

/** Reads one message. Everything that is ready goes to its sink. */
export interface MessageReader {
  /** A container begins. */
  start(place: XmlElement): void;
  /** An element of the innermost container. */
  take(element: XmlElement): void;
  /** A container ends, at last the message itself. */
  end(place: XmlElement): void;
}

/** Keeps an element of a container until the container is read. */
export function keep(container: XmlElement, element: XmlElement): void {
  if (container.children.length >= KEPT_MAX) {
    throw new BankFileError(`the element around has more than ${KEPT_MAX} elements`, element);
  }
  container.children.push(element);
}
