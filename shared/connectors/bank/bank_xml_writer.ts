/**
 * Writes XML without white space that could count as content. The order of the elements is that of
 * the arguments, so the same values give the same bytes.
 *
 * `null` stands for an element that is left out.
 */

/** Written XML. Only the functions of this module make one. */
export type Xml = string & { readonly xml: unique symbol };

export function textElement(
  name: string,
  text: string,
  attributes: Readonly<Record<string, string>> = {},
): Xml {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(value)}"`);
  return `<${name}${written.join("")}>${escape(text)}</${name}>` as Xml;
}

export function element(name: string, children: readonly (Xml | null)[]): Xml {
  return `<${name}>${children.filter((child) => child !== null).join("")}</${name}>` as Xml;
}

/** Returns an element with other elements, each in a line of its own. */
export function block(name: string, children: readonly (Xml | null)[]): Xml {
  return element(name, children.map((child) => child === null ? null : `\n${child}` as Xml));
}

/** Returns the bytes of a message of ISO 20022, such as `pain.001.001.09`. */
export function messageBytes(message: string, root: Xml): Uint8Array {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}">
${root}
</Document>
`;
  return new TextEncoder().encode(xml);
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ESCAPES[character]!);
}
