/**
 * A response that is sent in parts, such as a transcript. A part is read when the client has taken
 * the one before, and a client that does not take them in time gets no further ones: its connection
 * breaks off, and the memory of the part is free.
 */

/** Longest time for the sending: 16 MiB, the longest transcript, at 280 kB a second. */
const SENDING_MS = 60_000;

/** Makes the body. `rest` is returned in every end. */
export function bodyInParts(
  begin: string,
  rest: AsyncGenerator<string>,
  sending_ms = SENDING_MS,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = async () => {
    clearTimeout(timer);
    await rest.return(undefined);
  };
  return new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode(begin));
      timer = setTimeout(() => {
        controller.error(new Error("The client has not read the response in time"));
        end();
      }, sending_ms);
    },
    async pull(controller) {
      try {
        const { value, done } = await rest.next();
        if (!done) return controller.enqueue(encoder.encode(value));
        clearTimeout(timer);
        controller.close();
      } catch (error) {
        clearTimeout(timer);
        throw error;
      }
    },
    cancel: end,
  });
}
