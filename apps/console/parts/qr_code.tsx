/** QR codes, which readers find in each theme. */

import encodeQR from "qr";

/** Modules around the code that stay light (ISO/IEC 18004). */
const QUIET_ZONE = 4;

/** The code. `label` is its name for screen readers. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQR(text, "raw", { ecc: "medium", border: QUIET_ZONE });
  const dark = rows.flatMap((row, y) => row.flatMap((is_dark, x) => is_dark ? [[x, y]] : []));
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`}>
      <path
        d={dark.map(([x, y]) =>
          `M${x} ${y}h1v1h-1z`
        ).join("")}
      />
    </svg>
  );
}
