/** QR codes of the console and of the page for payers. */

import encodeQR from "qr";

/** Modules around the code that stay light (ISO/IEC 18004). */
const QUIET_ZONE = 4;

/** A code as one path, dark on white in each theme. `label` is its name for screen readers. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQR(text, "raw", { ecc: "medium", border: QUIET_ZONE });
  const path = rows.flatMap((row, y) => row.flatMap((dark, x) => dark ? `M${x} ${y}h1v1h-1z` : []));
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`}>
      <rect width="100%" height="100%" fill="#fff" />
      <path d={path.join("")} fill="#000" />
    </svg>
  );
}
