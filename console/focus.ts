/**
 * The focus when what had it is gone: an action has taken its own button away, data has replaced the
 * heading that stood for it. Left to the browser, a screen reader would begin again at the top.
 */

/** Leads the focus to the page's heading whenever its element leaves the frame; returns the end of it. */
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
