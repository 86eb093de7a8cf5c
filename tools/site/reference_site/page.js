// Starts Scalar with the reader's test key, if the page gets one. Everything that would call
// another host is off: fonts, telemetry, the assistant.

/** Milliseconds for which the page waits for the key of an open console. */
const CONSOLE_MS = 150;
/** Name of the channel on which a console of the same local start responds with its key. */
const CHANNEL = "payments-console-key";

start();
new MutationObserver(focusOperations).observe(document.body, { childList: true, subtree: true });

async function start() {
  const token = linkedKey() ?? await consoleKey();
  Scalar.createApiReference("#reference", {
    url: "openapi.json",
    theme: "none",
    layout: "modern",
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: "never",
    hideClientButton: true,
    hideDarkModeToggle: true,
    darkMode: isDark(),
    hiddenClients: true,
    documentDownloadType: "direct",
    orderSchemaPropertiesBy: "preserve",
    persistAuth: false,
    authentication: {
      preferredSecurityScheme: "api_key",
      ...(token && { securitySchemes: { api_key: { token } } }),
    },
  });
}

/**
 * Scalar's list of the operations of a section has links without an address, which no key reaches.
 * They take the focus, and Enter opens them.
 */
function focusOperations() {
  for (const link of document.querySelectorAll("a.endpoint:not([tabindex])")) {
    link.tabIndex = 0;
    link.role = "link";
    link.addEventListener("keydown", ({ key }) => key === "Enter" && link.click());
  }
}

/** Takes the key out of the address (`#key=sk_test_…`), so that no bookmark contains it. */
function linkedKey() {
  const prefix = "#key=";
  if (!location.hash.startsWith(prefix)) return null;
  const key = decodeURIComponent(location.hash.slice(prefix.length));
  history.replaceState(null, "", location.pathname);
  return testKey(key);
}

/** Asks an open console for its key. The key stays in the memory of both pages. */
async function consoleKey() {
  const channel = new BroadcastChannel(CHANNEL);
  try {
    return await new Promise((resolve) => {
      channel.addEventListener("message", ({ data }) => {
        if (typeof data?.key === "string") resolve(testKey(data.key));
      });
      setTimeout(() => resolve(null), CONSOLE_MS);
      channel.postMessage("key?");
    });
  } finally {
    channel.close();
  }
}

/** A live key must not enter a page. */
function testKey(text) {
  return /^[a-z][a-z0-9]{0,15}_test_[0-9A-Za-z]+$/.test(text) ? text : null;
}

/** The reader's choice in the documentation, or the setting of the system. */
function isDark() {
  try {
    const theme = localStorage.getItem("payments-docs-theme");
    if (theme) return theme === "dark";
  } catch {
    // A browser can forbid the storage.
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
