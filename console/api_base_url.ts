/** The address of the API. */

/** Returns the base URL of the API, which the build has written into the page. */
export function apiBaseUrl(): string {
  const { content } = document.querySelector<HTMLMetaElement>('meta[name="api-base-url"]')!;
  return new URL(content, location.origin).href;
}
