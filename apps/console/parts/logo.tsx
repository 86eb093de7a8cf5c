/** The logo. */

/** The symbol and the name of the product. */
export function Logo() {
  return (
    <span class="logo">
      <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="logo-ground" />
        <path d="M9 12h14M9 20h8" class="logo-lines" />
        <circle cx="22" cy="20" r="2.4" class="logo-dot" />
      </svg>
      <span>Payments</span>
      <span class="mode">Sandbox</span>
    </span>
  );
}
