/** The headings and links of a Markdown document. */

/** A link of a document. */
interface Link {
  target: string;
  /** The first line is 1. */
  line: number;
}

/** Returns the lines of a document. The lines of code blocks are empty. */
export function proseLines(document: string): string[] {
  let in_block = false;
  return document.split("\n").map((line) => {
    const is_fence = /^\s*```/.test(line);
    if (is_fence) in_block = !in_block;
    return is_fence || in_block ? "" : line;
  });
}

/** Returns the texts of all headings, without `#`. */
function headings(document: string): string[] {
  return proseLines(document).flatMap((line) => {
    const [, text] = /^#{1,6} +(.*?) *$/.exec(line) ?? [];
    return text === undefined ? [] : [text];
  });
}

/** The anchors of all headings, as GitHub makes them. */
export function anchors(document: string): Set<string> {
  const found = new Map<string, number>();
  return new Set(
    headings(document).map((heading) => {
      const anchor = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
      const earlier = found.get(anchor) ?? 0;
      found.set(anchor, earlier + 1);
      return earlier === 0 ? anchor : `${anchor}-${earlier}`;
    }),
  );
}

/** All links outside of code. */
export function links(document: string): Link[] {
  return proseLines(document).flatMap((text, index) =>
    [...text.replace(/`[^`]*`/g, "").matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => ({ target: target!, line: index + 1 }))
  );
}
