/**
 * Restores the focus when the focused element is removed: an action removes its own button, or
 * loaded data replaces a heading. Without this, screen readers would start again at the top.
 */

/**
 * Moves the focus to the heading of the page whenever the focused element is removed from the
 * frame. Returns a function that ends this.
 */
export function keepFocus(frame: HTMLElement): () => void {
  let last: EventTarget | null = null;
  const note = (event: FocusEvent) => {
    last = event.target;
  };
  const observer = new MutationObserver(() => {
    if (!(last instanceof Node) || last.isConnected) return;
    last = null;
    if (document.activeElement !== document.body) return;
    frame.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  });
  document.addEventListener("focusin", note);
  observer.observe(frame, { childList: true, subtree: true });
  return () => {
    document.removeEventListener("focusin", note);
    observer.disconnect();
  };
}
