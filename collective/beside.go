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
		e.batches, e.sent, e.besideEnded = make(chan batch, 1), make(chan error, 1), make(chan struct{})
		e.group.owned.Go(e.besideLoop)
	}
	e.pending = true
	e.batches <- b
}

// besideLoop ends with the group, after a batch that has been handed over.
func (e *executor) besideLoop() {
	defer close(e.besideEnded)
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
	select {
	case err := <-e.sent:
		return err
	case <-e.besideEnded:
	}
	select { // one of the two: the group ended before the batch came, or after
	case b := <-e.batches:
		return e.group.fail(b.work, e.group.ctx.Err())
	case err := <-e.sent:
		return err
	}
}
