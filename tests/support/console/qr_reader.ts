/** Reads QR codes of the console, as a phone does. */
/// <reference lib="dom" />

import type { Page } from "playwright-core";
import decodeQR from "qr/decode.js";

/** Reads the QR code from a picture of the page, as a wallet does. */
export async function readQrCode(page: Page): Promise<string> {
  const picture = (await page.locator(".qr").screenshot()).toString("base64");
  // The policy of the console allows no picture from text, so an empty page decodes this one.
  const reader = await page.context().newPage();
  const image = await reader.evaluate(async (picture) => {
    const img = new Image();
    img.src = `data:image/png;base64,${picture}`;
    await img.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.width, img.height];
    const context = canvas.getContext("2d")!;
    context.drawImage(img, 0, 0);
    const { data } = context.getImageData(0, 0, img.width, img.height);
    return { width: img.width, height: img.height, data: [...data] };
  }, picture);
  await reader.close();
  return decodeQR({ ...image, data: new Uint8ClampedArray(image.data) });
}
