// Streaming_web serves a page that shows the answer while the agent writes it. Closing the page interrupts the turn.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

const page = `<!doctype html><title>qwen</title>
<form><input name="prompt" value="What files are here?" size="60"><button>Ask</button></form><pre id="answer"></pre>
<script>
document.querySelector('form').onsubmit = (event) => {
  event.preventDefault();
  const answer = document.querySelector('#answer');
  answer.textContent = '';
  const source = new EventSource('/stream?prompt=' + encodeURIComponent(event.target.prompt.value));
  source.onmessage = ({ data }) => { answer.textContent += JSON.parse(data); };
  source.addEventListener('done', ({ data }) => { answer.dataset.status = data; source.close(); });
};
</script>`

func main() {
	address := flag.String("address", "127.0.0.1:0", "the address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := qwen.Open(ctx, qwen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	})
	http.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) { stream(m, w, r) })
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	server := &http.Server{}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		log.Print(err)
	}
}

// stream sends the turn as server-sent events. The request's context ends when the page is closed.
func stream(m *qwen.Manager, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for message, err := range m.Stream(r.Context(), r.FormValue("prompt")) {
		if err != nil {
			log.Print(err)
			return
		}
		switch message := message.(type) {
		case *qwen.Text:
			// As JSON the text is one line.
			text, _ := json.Marshal(message.Text)
			fmt.Fprintf(w, "data: %s\n\n", text)
		case *qwen.Result:
			fmt.Fprintf(w, "event: done\ndata: %s\n\n", message.Status)
		}
		http.NewResponseController(w).Flush()
	}
}
