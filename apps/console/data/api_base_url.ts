/** The address of the API. */

/** Returns the base URL of the API, which the build has written into the page. */
export function apiBaseUrl(): string {
  return new URL(writtenUrl(), location.origin).href;
}

/** Whether the local start serves the page: only then the base URL is a path. */
export function isLocalStart(): boolean {
  return writtenUrl().startsWith("/");
}

function writtenUrl(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="api-base-url"]')!.content;
}
