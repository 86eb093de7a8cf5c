// Applies the reader's choice of light or dark before the first paint.
try {
  const theme = localStorage.getItem("payments-docs-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // A browser can forbid the storage. Then the page is as the system is set.
}
