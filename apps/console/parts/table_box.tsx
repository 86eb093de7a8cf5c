/** The box around a table that can be wider than its place. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** The cells and paragraphs of a table whose text CSS cuts. */
const CUT = ".cut, .grow, .grow > p";

/**
 * The box. If the table is wider, the box scrolls and takes the focus, so that the arrows of the
 * keyboard scroll it. A text that is cut is also the title of its cell.
 */
export function TableBox({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => {
    const { current } = box;
    // The observer also reports once at the beginning, and so after each change of the table.
    const observer = new ResizeObserver(() => {
      setScrolls(current!.scrollWidth > current!.clientWidth);
      current!.querySelectorAll<HTMLElement>(CUT).forEach(nameCut);
    });
    observer.observe(current!);
    observer.observe(current!.firstElementChild!);
    return () => observer.disconnect();
  });
  const focus = scrolls && { role: "group" as const, tabIndex: 0, "aria-label": label };
  return <div ref={box} class="scroll" {...focus}>{children}</div>;
}

function nameCut(cell: HTMLElement): void {
  if (cell.scrollWidth <= cell.clientWidth) return cell.removeAttribute("title");
  cell.title = [...cell.childNodes].map(({ textContent }) => textContent).join(" ");
}
