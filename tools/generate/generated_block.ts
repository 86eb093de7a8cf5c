/** Generated blocks in hand-written documents. */

/** Returns the two lines around a block. */
function markersOf(name: string) {
  return { begin: `<!-- generated: ${name} -->`, end: `<!-- end: ${name} -->` };
}

/**
 * Returns the document with a new text in the block of this name.
 * @throws {Error} if the document lacks one of the markers
 */
export function replaceBlock(document: string, name: string, text: string): string {
  const { begin, end } = markersOf(name);
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the markers ${begin} and ${end} are missing`);
  return `${document.slice(0, from)}${begin}\n\n${text}\n\n${document.slice(to)}`;
}
