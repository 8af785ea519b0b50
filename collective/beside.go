package collective

// batch is what a call sends.
type batch struct {
	work      *Work
	header    header
	transfers []transfer
}

// sendBeside hands a call's transfers to the second goroutine, which starts with
// the first large one.
func (e *executor) sendBeside(b batch) {
	if e.batches == nil {
		e.batches, e.sent = make(chan batch, 1), make(chan error, 1)
		e.group.owned.Go(e.besideLoop)
	}
	e.pending = true
	e.batches <- b
}

// besideLoop ends with the group, after a batch that has been handed over.
func (e *executor) besideLoop() {
	for {
		select {
		case b := <-e.batches:
			e.sent <- e.sendAll(b)
		case <-e.group.ctx.Done():
			select {
			case b := <-e.batches:
				e.sent <- e.sendAll(b)
			default:
			}
			return
		}
	}
}

// sendAll sends a batch. Its error ends the group at once, because the call
// may wait for something that will never come.
func (e *executor) sendAll(b batch) error {
	for i := range b.transfers {
		t := &b.transfers[i]
		if err := e.beside.send(t.peer, b.header, e.buffer(t.at), t.needs); err != nil {
			return e.group.fail(b.work, err)
		}
	}
	return nil
}

func (e *executor) awaitBeside() error {
	if !e.pending {
		return nil
	}
	e.pending = false
	return <-e.sent
}
