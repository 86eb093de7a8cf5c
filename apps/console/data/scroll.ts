/**
 * Keeps how far each step of the history is scrolled, and scrolls there on the way back. The
 * browser cannot do it, because the page is still empty at that time.
 */

/** Milliseconds in which a page gets its content, so that it is long enough. */
const GROWS_MS = 3_000;
/** The inputs by which a user scrolls or goes on. They end the way back. */
const INPUTS = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/** Where a step was left. A step that a link makes begins with the place of the one before. */
interface Place {
  key: string | undefined;
  y: number;
}

let end = () => {};

/** Begins to keep the places. Called once. */
export function keepScroll(): void {
  // An older browser scrolls by itself, as far as it can.
  if (!("navigation" in globalThis)) return;
  history.scrollRestoration = "manual";
  navigation.addEventListener("navigate", () => {
    end();
    const place: Place = { key: navigation.currentEntry?.key, y: scrollY };
    navigation.updateCurrentEntry({ state: place });
  });
  for (const input of INPUTS) addEventListener(input, () => end(), { passive: true });
}

/** Scrolls to where the present step of the history was left. A new step has no such place. */
export function restoreScroll(): void {
  if (!("navigation" in globalThis)) return;
  const { currentEntry } = navigation;
  const place = currentEntry?.getState() as Place | undefined;
  if (place === undefined || place.key !== currentEntry!.key) return;
  const observer = new ResizeObserver(() => scrollTo(0, place.y));
  observer.observe(document.body);
  const timer = setTimeout(() => end(), GROWS_MS);
  end = () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}
