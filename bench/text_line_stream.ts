/** Bytes of UTF-8 to lines, without their ends; what follows the last end is dropped. */
export class TextLineStream {
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;

  constructor() {
    const decoder = new TextDecoder();
    let parts: string[] = [];
    const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, string>({
      transform(chunk, controller) {
        const lines = decoder.decode(chunk, { stream: true }).split("\n");
        // A long line comes in many pieces: they are joined once, when it ends.
        for (let i = 0; i < lines.length - 1; i++) {
          parts.push(lines[i]!);
          controller.enqueue(parts.join(""));
          parts = [];
        }
        parts.push(lines.at(-1)!);
      },
    });
    this.readable = readable;
    this.writable = writable;
  }
}
